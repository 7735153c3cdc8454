#include "bindings.hpp"
#include "core/features/fourier.hpp"
#include "core/jkce.hpp"

namespace ckce {

void bind_jkce(py::module_& module) {
  const auto pair = [](const JkceSums& sums) {
    return std::make_pair(sums.off_diagonal, sums.diagonal);
  };
  module.def("jkce_exact",
             [pair](const py::array& probs, const Labels& labels, const Weights& weights,
                    const std::optional<Doubles>& label_factor, const std::string& kernel,
                    double bandwidth, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, weights);
               const LabelKernel label = label_kernel(label_factor);
               return pair(run(n_threads, progress, [&](Parallel& parallel) {
                 return jkce_exact(*make_kernel(kernel, bandwidth), samples, label, parallel);
               }));
             });
  module.def(
      "jkce_gram", [pair](const Doubles& gram, const py::array& probs, const Labels& labels,
                          const Weights& weights, const std::optional<Doubles>& label_factor) {
        const Samples samples = view_samples(probs, labels, weights);
        const LabelKernel label = label_kernel(label_factor);
        return pair(run(1, py::none(),
                        [&](Parallel&) { return jkce_gram(view_matrix(gram), samples, label); }));
      });
  module.def("jkce_fourier",
             [pair](const py::array& probs, const Labels& labels, const Weights& weights,
                    const std::optional<Doubles>& label_factor, const Doubles& frequencies,
                    bool linear_part, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, weights);
               const LabelKernel label = label_kernel(label_factor);
               const Fourier features(view_matrix(frequencies), linear_part);
               return pair(run(n_threads, progress, [&](Parallel& parallel) {
                 return jkce_features(features, samples, label, parallel);
               }));
             });
}

}  // namespace ckce
