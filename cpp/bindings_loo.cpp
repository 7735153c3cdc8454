#include "bindings.hpp"
#include "core/features/fourier.hpp"
#include "core/loo.hpp"

namespace ckce {

void bind_loo(py::module_& module) {
  module.def(
      "loo_fourier", [](const py::array& probs, const Labels& labels, const Weights& weights,
                        const std::optional<Doubles>& label_factor, const Doubles& frequencies,
                        bool linear_part, const std::vector<double>& ridges, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        const LabelKernel label = label_kernel(label_factor);
        const Fourier features(view_matrix(frequencies), linear_part);
        return to_numpy(run(n_threads, py::none(), [&](Parallel& parallel) {
          return loo_features(
              features, samples, label,
              Eigen::Map<const Vector>(ridges.data(), static_cast<Index>(ridges.size())), parallel);
        }));
      });
  module.def(
      "loo_cholesky", [](const py::array& probs, const Labels& labels, const Weights& weights,
                         const std::optional<Doubles>& label_factor, const std::string& kernel,
                         double bandwidth, Index rank, double tol, std::uint64_t seed,
                         const std::vector<double>& ridges, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        const LabelKernel label = label_kernel(label_factor);
        return to_numpy(run(n_threads, py::none(), [&](Parallel& parallel) {
          return loo_cholesky(
              *make_kernel(kernel, bandwidth), samples, label, rank, tol, seed,
              Eigen::Map<const Vector>(ridges.data(), static_cast<Index>(ridges.size())), parallel);
        }));
      });
}

}  // namespace ckce
