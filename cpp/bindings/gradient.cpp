#include "core/metrics/gradient.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {

void bind_gradient(py::module_& module) {
  const auto pair = [](const Gradient& gradient) {
    return py::make_tuple(gradient.value, to_numpy(gradient.probs));
  };
  module.def(
      "gradient_exact",
      [pair](const py::array& probs, const Labels& labels, const Weights& weights,
             const Factor& label_factor, const Kernel& kernel, double ridge, double tol,
             Solver solver, bool debias, bool through_kernel, int n_threads,
             const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights);
        const LabelKernel label = label_kernel(label_factor);
        return pair(run(n_threads, progress, [&](Parallel& parallel) {
          return gradient_exact(kernel, samples, label, ridge, tol, solver,
                                {debias, through_kernel}, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("kernel"), py::arg("ridge"), py::arg("tol"), py::arg("solver"),
      py::arg("debias"), py::arg("through_kernel"), py::arg("n_threads"), py::arg("progress"));
  module.def(
      "gradient_features",
      [pair](const py::array& probs, const Labels& labels, const Weights& weights,
             const Factor& label_factor, const Features& features, double ridge, bool debias,
             bool through_kernel, int n_threads, const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights, features);
        const LabelKernel label = label_kernel(label_factor);
        return pair(run(n_threads, progress, [&](Parallel& parallel) {
          return gradient_features(features, samples, label, ridge, {debias, through_kernel},
                                   parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("features"), py::arg("ridge"), py::arg("debias"),
      py::arg("through_kernel"), py::arg("n_threads"), py::arg("progress"));
}

}  // namespace ckce
