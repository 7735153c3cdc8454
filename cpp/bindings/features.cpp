// Kernels and feature maps: what the metrics are computed with.

#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/features/cholesky.hpp"
#include "core/features/fourier.hpp"
#include "core/features/landmarks.hpp"
#include "core/features/linear.hpp"

namespace ckce {

void bind_features(py::module_& module) {
  py::class_<Kernel, std::shared_ptr<Kernel>>(module, "Kernel")
      .def(py::init([](const std::string& name, double bandwidth) {
             return std::shared_ptr<Kernel>(make_kernel(name, bandwidth));
           }),
           py::arg("name"), py::arg("bandwidth"));
  py::class_<Features, std::shared_ptr<Features>>(module, "Features")
      .def_property_readonly("n_features", &Features::d);
  py::enum_<Pivoting>(module, "Pivoting")
      .value("greedy", Pivoting::kGreedy)
      .value("random", Pivoting::kRandom);

  module.def(
      "linear_features",
      [](Index n_classes) -> std::shared_ptr<Features> {
        return std::make_shared<LinearFeatures>(n_classes);
      },
      py::arg("n_classes"));
  module.def(
      "fourier_features",
      [](const Doubles& frequencies, bool linear_part,
         const Factor& chebyshev) -> std::shared_ptr<Features> {
        if (!chebyshev) return std::make_shared<Fourier>(view_matrix(frequencies), linear_part);
        return std::make_shared<Fourier>(view_matrix(frequencies), view_matrix(*chebyshev),
                                         linear_part);
      },
      py::arg("frequencies"), py::kw_only(), py::arg("linear_part"),
      py::arg("chebyshev") = py::none());
  module.def(
      "landmark_features",
      [](const Doubles& points, const Doubles& factor,
         const std::shared_ptr<Kernel>& kernel) -> std::shared_ptr<Features> {
        return std::make_shared<Landmarks>(kernel, view_matrix(points), view_matrix(factor));
      },
      py::arg("points"), py::arg("factor"), py::kw_only(), py::arg("kernel").none(false));
  module.def(
      "cholesky_features",
      [](const py::array& probs, const Kernel& kernel, Index rank, double tol, Pivoting pivoting,
         std::uint64_t seed, int n_threads,
         const py::object& progress) -> std::shared_ptr<Features> {
        const Probs view = view_probs(probs);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return std::make_shared<Cholesky>(
              factor_kernel(kernel, view, rank, tol, pivoting, seed, parallel));
        });
      },
      py::arg("probs"), py::kw_only(), py::arg("kernel"), py::arg("rank"), py::arg("tol"),
      py::arg("pivoting"), py::arg("seed"), py::arg("n_threads"), py::arg("progress"));

  module.def(
      "chebyshev_factor",
      [](const Doubles& frequencies) {
        return to_numpy(chebyshev_factor(view_matrix(frequencies)));
      },
      py::arg("frequencies"));
  module.def(
      "choose_landmarks",
      [](const py::array& sample, const Kernel& kernel, Index count, double tol, Pivoting pivoting,
         std::uint64_t seed, int n_threads) {
        const Probs view = view_probs(sample);
        return run(n_threads, [&](Parallel& parallel) {
          return choose_landmarks(kernel, view, count, tol, pivoting, seed, parallel);
        });
      },
      py::arg("sample"), py::kw_only(), py::arg("kernel"), py::arg("count"), py::arg("tol"),
      py::arg("pivoting"), py::arg("seed"), py::arg("n_threads"));
  module.def(
      "landmark_factor",
      [](const py::array& points, const Kernel& kernel, int n_threads) {
        const Probs view = view_probs(points);
        const LandmarkFactor result = run(n_threads, [&](Parallel& parallel) {
          return factor_landmarks(kernel, view, parallel);
        });
        return py::make_tuple(to_numpy(result.factor), result.repeated);
      },
      py::arg("points"), py::kw_only(), py::arg("kernel"), py::arg("n_threads"));
}

}  // namespace ckce
