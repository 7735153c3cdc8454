// NumPy arrays become views, the GIL is released, calls are forwarded: what all bindings share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "core/parallel.hpp"
#include "core/residuals.hpp"

namespace py = pybind11;

namespace ckce {
// Whatever lies across the borders of its numbers is copied; predictions need not be, see Probs.
constexpr int kAligned = py::detail::npy_api::NPY_ARRAY_ALIGNED_;
using Doubles = py::array_t<double, py::array::f_style | kAligned>;
using Labels = py::array_t<std::int64_t, py::array::c_style | kAligned>;
using Row = py::array_t<double, py::array::c_style | kAligned>;
using Weights = std::optional<Row>;

struct Interrupted {};  // the Python error indicator is set

// Asks Python for signals, and reports progress, from the calling thread.
inline Tick make_tick(const py::object& progress) {
  return [&progress](double fraction) {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw Interrupted();
    if (!progress.is_none()) progress(fraction);
  };
}

// Runs work(parallel) without the GIL.
template <class Work>
auto run(int n_threads, const py::object& progress, Work work) {
  Parallel parallel(n_threads, make_tick(progress));
  try {
    const py::gil_scoped_release no_gil;
    return work(parallel);
  } catch (const Interrupted&) {
    throw py::error_already_set();
  }
}

inline Probs view_probs(const py::array& array) {
  if (array.ndim() != 2) throw py::type_error("probs must be 2-D");
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

inline Eigen::Map<const Matrix> view_matrix(const Doubles& array) {
  if (array.ndim() != 2) throw py::type_error("a matrix must be 2-D");
  // Where an array without entries lies means nothing, not even to NumPy.
  return {array.size() == 0 ? nullptr : array.data(), array.shape(0), array.shape(1)};
}

inline Eigen::Map<const Vector> view_vector(const Row& array) {
  return {array.size() == 0 ? nullptr : array.data(), array.size()};
}

inline LabelKernel label_kernel(const std::optional<Doubles>& factor) {
  LabelKernel label;
  if (factor) label.factor = view_matrix(*factor);
  return label;
}

inline py::array_t<double> to_numpy(const Vector& vector) {
  return py::array_t<double>(vector.size(), vector.data());
}

inline py::array_t<double> to_numpy(const Matrix& matrix) {
  py::array_t<double> array({matrix.rows(), matrix.cols()});
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
      array.mutable_data(), matrix.rows(), matrix.cols()) = matrix;
  return array;
}

void bind_door(py::module_& module);              // bindings_door.cpp
void bind_ckce(py::module_& module);              // bindings_ckce.cpp
void bind_jkce(py::module_& module);              // bindings_jkce.cpp
void bind_ece(py::module_& module);               // bindings_ece.cpp
void bind_calibration_test(py::module_& module);  // bindings_calibration_test.cpp
void bind_loo(py::module_& module);               // bindings_loo.cpp
void bind_accumulator(py::module_& module);       // bindings_accumulator.cpp

}  // namespace ckce
