#include "core/metrics/witness.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {

void bind_witness(py::module_& module) {
  module.def(
      "witness_features",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Features& features, double ridge, bool own, int n_threads,
         const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights, features);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return own ? own_witness_features(features, samples, ridge, parallel)
                     : witness_features(features, samples, ridge, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("features"),
      py::arg("ridge"), py::arg("own"), py::arg("n_threads"), py::arg("progress"));
  module.def(
      "witness_exact",
      [](const py::array& probs, const Labels& labels, const Weights& weights, const Kernel& kernel,
         double ridge, Solver solver, int n_threads, const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return witness_exact(kernel, samples, ridge, solver, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("kernel"),
      py::arg("ridge"), py::arg("solver"), py::arg("n_threads"), py::arg("progress"));
  module.def(
      "own_witness_exact",
      [](const py::array& probs, const Labels& labels, const Weights& weights, const Kernel& kernel,
         double ridge, int n_threads, const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return own_witness_exact(kernel, samples, ridge, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("kernel"),
      py::arg("ridge"), py::arg("n_threads"), py::arg("progress"));
  module.def(
      "kernel_sums",
      [](const py::array& at, const py::array& points, const Doubles& v, const Kernel& kernel,
         int n_threads) {
        const Probs asked = view_probs(at);
        const Probs known = view_probs(points);
        const Matrix factors = view_matrix(v);
        if (asked.m != known.m || factors.rows() != known.n)
          throw py::type_error("at, points and v must be of the same classes and rows");
        return to_numpy(run(n_threads, [&](Parallel& parallel) {
          return kernel_sums(kernel, asked, known, factors, parallel);
        }));
      },
      py::arg("at"), py::arg("points"), py::arg("v"), py::kw_only(), py::arg("kernel"),
      py::arg("n_threads"));
}

}  // namespace ckce
