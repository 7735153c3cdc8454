#include "bindings.hpp"
#include "core/calibration_test.hpp"
#include "core/features/fourier.hpp"

namespace ckce {

void bind_calibration_test(py::module_& module) {
  module.def("resample_fourier", [](const py::array& probs, const Labels& labels,
                                    const Doubles& frequencies, bool linear_part, double ridge,
                                    Index n_resamples, std::uint64_t seed, Index table,
                                    int n_threads, const py::object& progress) {
    const Samples samples = view_samples(probs, labels, std::nullopt);
    const Fourier features(view_matrix(frequencies), linear_part);
    return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
      return resample_features(features, samples, ridge, n_resamples, seed, table, parallel);
    }));
  });
  module.def("resample_cholesky",
             [](const py::array& probs, const Labels& labels, const std::string& kernel,
                double bandwidth, Index rank, double tol, bool random_pivots,
                std::uint64_t pivot_seed, double ridge, Index n_resamples, std::uint64_t seed,
                Index table, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, std::nullopt);
               const Resampled resampled = run(n_threads, progress, [&](Parallel& parallel) {
                 return resample_cholesky(*make_kernel(kernel, bandwidth), samples, rank, tol,
                                          random_pivots ? Pivoting::kRandom : Pivoting::kGreedy,
                                          pivot_seed, ridge, n_resamples, seed, table, parallel);
               });
               return std::make_pair(to_numpy(resampled.statistics), resampled.rank);
             });
}

}  // namespace ckce
