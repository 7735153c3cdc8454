// NumPy arrays become views for the core, and its results NumPy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <vector>

#include "core/base/groups.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/label_kernel.hpp"

namespace py = pybind11;

namespace ckce {

// Whatever lies across the borders of its numbers is copied; predictions need not be, see Probs.
constexpr int kAligned = py::detail::npy_api::NPY_ARRAY_ALIGNED_;
using Doubles = py::array_t<double, py::array::f_style | kAligned>;
using Labels = py::array_t<std::int64_t, py::array::c_style | kAligned>;
using Row = py::array_t<double, py::array::c_style | kAligned>;
using Weights = std::optional<Row>;
using Factor = std::optional<Doubles>;

inline Probs view_probs(const py::array& array) {
  if (array.ndim() != 2 || array.shape(1) < 1)
    throw py::type_error("probs must be 2-D, of at least one column");
  Probs probs;
  switch (array.dtype().char_()) {
    case 'e':
      probs.dtype = Dtype::kFloat16;
      break;
    case 'f':
      probs.dtype = Dtype::kFloat32;
      break;
    case 'd':
      probs.dtype = Dtype::kFloat64;
      break;
    default:
      throw py::type_error("probs must be float16, float32 or float64");
  }
  probs.data = static_cast<const char*>(array.data());
  probs.n = array.shape(0);
  probs.m = array.shape(1);
  probs.row_stride = array.strides(0);
  probs.col_stride = array.strides(1);
  return probs;
}

inline Samples view_samples(const py::array& probs, const Labels& labels, const Weights& weights) {
  Samples samples;
  samples.probs = view_probs(probs);
  if (labels.ndim() != 1 || labels.shape(0) != samples.n() ||
      (weights && (weights->ndim() != 1 || weights->shape(0) != samples.n())))
    throw py::type_error("probs, labels and weights must have equal lengths");
  samples.labels = labels.data();
  samples.weights = weights ? weights->data() : nullptr;
  return samples;
}

// Rows that depend on each other, by the code 0, 1, 2, ... of their group.
using Codes = std::optional<Labels>;
inline std::optional<Groups> groups_of(const Codes& codes, const Samples& samples) {
  if (!codes) return std::nullopt;
  if (codes->ndim() != 1 || codes->shape(0) != samples.n())
    throw py::type_error("probs and groups must have equal lengths");
  return Groups(codes->data(), samples.n());
}

// Groups of predictions with their weights, without labels.
inline std::vector<Samples> view_groups(const std::vector<py::array>& probs,
                                        const std::vector<Weights>& weights) {
  if (probs.size() != weights.size()) throw py::type_error("probs and weights must be as many");
  std::vector<Samples> groups(probs.size());
  for (std::size_t i = 0; i < probs.size(); ++i) {
    groups[i].probs = view_probs(probs[i]);
    groups[i].weights = weights[i] ? weights[i]->data() : nullptr;
  }
  return groups;
}

// Samples that the feature map is for.
inline Samples view_samples(const py::array& probs, const Labels& labels, const Weights& weights,
                            const Features& features) {
  const Samples samples = view_samples(probs, labels, weights);
  if (features.m() != samples.m() || features.rows().value_or(samples.n()) != samples.n())
    throw py::type_error("features and probs must be of the same classes and rows");
  return samples;
}

inline Eigen::Map<const Matrix> view_matrix(const Doubles& array) {
  if (array.ndim() != 2) throw py::type_error("a matrix must be 2-D");
  // Where an array without entries lies means nothing, not even to NumPy.
  return {array.size() == 0 ? nullptr : array.data(), array.shape(0), array.shape(1)};
}

inline Eigen::Map<const Vector> view_vector(const Row& array) {
  return {array.size() == 0 ? nullptr : array.data(), array.size()};
}

inline LabelKernel label_kernel(const Factor& factor) {
  return factor ? LabelKernel{view_matrix(*factor)} : LabelKernel{};
}

inline py::array_t<double> to_numpy(const Vector& vector) {
  return py::array_t<double>(vector.size(), vector.data());
}

inline py::array_t<std::int64_t> to_numpy(const std::vector<std::int64_t>& vector) {
  return py::array_t<std::int64_t>(static_cast<Index>(vector.size()), vector.data());
}

inline py::array_t<double> to_numpy(const Matrix& matrix) {
  py::array_t<double> array({matrix.rows(), matrix.cols()});
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
      array.mutable_data(), matrix.rows(), matrix.cols()) = matrix;
  return array;
}

}  // namespace ckce
