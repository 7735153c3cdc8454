#include "core/metrics/loo.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {

void bind_loo(py::module_& module) {
  module.def(
      "loo_features",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Features& features, const std::vector<double>& ridges,
         int n_threads) {
        const Samples samples = view_samples(probs, labels, weights, features);
        const LabelKernel label = label_kernel(label_factor);
        return to_numpy(run(n_threads, [&](Parallel& parallel) {
          return loo_features(features, samples, label, ridges, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("features"), py::arg("ridges"), py::arg("n_threads"));
}

}  // namespace ckce
