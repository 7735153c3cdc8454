#include "core/metrics/calibration_test.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {

void bind_calibration_test(py::module_& module) {
  module.def(
      "resample_features",
      [](const py::array& probs, const Labels& labels, const Features& features, double ridge,
         Index n_resamples, std::uint64_t seed, Index table, int n_threads,
         const py::object& progress) {
        const Samples samples = view_samples(probs, labels, std::nullopt, features);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return resample_features(features, samples, ridge, n_resamples, seed, table, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::kw_only(), py::arg("features"), py::arg("ridge"),
      py::arg("n_resamples"), py::arg("seed"), py::arg("table"), py::arg("n_threads"),
      py::arg("progress"));
}

}  // namespace ckce
