#include "bindings.hpp"
#include "core/features/fourier.hpp"
#include "core/jkce.hpp"

namespace ckce {

void bind_jkce(py::module_& module) {
  py::class_<JkceSums>(module, "JkceSums")
      .def_readonly("off_diagonal", &JkceSums::off_diagonal)
      .def_readonly("diagonal", &JkceSums::diagonal)
      .def_readonly("rank", &JkceSums::rank)
      .def_property_readonly("rows", [](const JkceSums& s) { return to_numpy(s.rows); });

  module.def("jkce_exact",
             [](const py::array& probs, const Labels& labels, const Weights& weights,
                const std::optional<Doubles>& label_factor, const std::string& kernel,
                double bandwidth, bool full, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, weights);
               const LabelKernel label = label_kernel(label_factor);
               return run(n_threads, progress, [&](Parallel& parallel) {
                 return jkce_exact(*make_kernel(kernel, bandwidth), samples, label, full, parallel);
               });
             });
  module.def("jkce_gram", [](const Doubles& gram, const py::array& probs, const Labels& labels,
                             const Weights& weights, const std::optional<Doubles>& label_factor,
                             bool full) {
    const Samples samples = view_samples(probs, labels, weights);
    const LabelKernel label = label_kernel(label_factor);
    return run(1, py::none(),
               [&](Parallel&) { return jkce_gram(view_matrix(gram), samples, label, full); });
  });
  module.def("jkce_fourier",
             [](const py::array& probs, const Labels& labels, const Weights& weights,
                const std::optional<Doubles>& label_factor, const Doubles& frequencies,
                bool linear_part, bool full, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, weights);
               const LabelKernel label = label_kernel(label_factor);
               const Fourier features(view_matrix(frequencies), linear_part);
               return run(n_threads, progress, [&](Parallel& parallel) {
                 return jkce_features(features, samples, label, full, parallel);
               });
             });
  module.def("jkce_cholesky",
             [](const py::array& probs, const Labels& labels, const Weights& weights,
                const std::optional<Doubles>& label_factor, const std::string& kernel,
                double bandwidth, Index rank, double tol, bool random_pivots, std::uint64_t seed,
                bool full, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, weights);
               const LabelKernel label = label_kernel(label_factor);
               return run(n_threads, progress, [&](Parallel& parallel) {
                 return jkce_cholesky(*make_kernel(kernel, bandwidth), samples, label, rank, tol,
                                      random_pivots ? Pivoting::kRandom : Pivoting::kGreedy, seed,
                                      full, parallel);
               });
             });
  module.def("jkce_blocks", [](const py::array& probs, const Labels& labels, const Weights& weights,
                               const std::optional<Doubles>& label_factor,
                               const std::string& kernel, double bandwidth, Index block_size,
                               int n_threads, const py::object& progress) {
    const Samples samples = view_samples(probs, labels, weights);
    const LabelKernel label = label_kernel(label_factor);
    return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
      return jkce_blocks(*make_kernel(kernel, bandwidth), samples, label, block_size, parallel);
    }));
  });
}

}  // namespace ckce
