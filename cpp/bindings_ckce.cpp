#include "bindings.hpp"
#include "core/dense.hpp"
#include "core/exact.hpp"
#include "core/features/cholesky.hpp"
#include "core/features/fourier.hpp"
#include "core/moments.hpp"

namespace ckce {

void bind_ckce(py::module_& module) {
  py::class_<Solution>(module, "Solution")
      .def_readonly("value", &Solution::value)
      .def_readonly("bound", &Solution::bound)
      .def_readonly("debias", &Solution::debias)
      .def_readonly("floor", &Solution::floor)
      .def_readonly("iterations", &Solution::iterations)
      .def_readonly("rank", &Solution::rank)
      .def_readonly("debias_rank", &Solution::debias_rank)
      .def_readonly("debias_error", &Solution::debias_error)
      .def_property_readonly("influence", [](const Solution& s) { return to_numpy(s.influence); })
      .def_property_readonly("per_class", [](const Solution& s) { return to_numpy(s.per_class); });
  module.attr("FACTORISATION_LIMIT") = kFactorisationLimit;

  module.def("ckce_exact", [](const py::array& probs, const Labels& labels, const Weights& weights,
                              const std::optional<Doubles>& label_factor, const std::string& kernel,
                              double bandwidth, double ridge, double tol, bool full, bool iterate,
                              int n_threads, const py::object& progress) {
    const Samples samples = view_samples(probs, labels, weights);
    const LabelKernel label = label_kernel(label_factor);
    return run(n_threads, progress, [&](Parallel& parallel) {
      return solve_exact(*make_kernel(kernel, bandwidth), samples, label, ridge, tol, full, iterate,
                         parallel);
    });
  });
  module.def("ckce_gram", [](const Doubles& gram, const py::array& probs, const Labels& labels,
                             const Weights& weights, const std::optional<Doubles>& label_factor,
                             double ridge, bool full, int n_threads, const py::object& progress) {
    const Samples samples = view_samples(probs, labels, weights);
    const LabelKernel label = label_kernel(label_factor);
    return run(n_threads, progress, [&](Parallel& parallel) {
      return solve_gram(view_matrix(gram), samples, label, ridge, full, parallel);
    });
  });
  module.def(
      "ckce_fourier",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const std::optional<Doubles>& label_factor, const Doubles& frequencies, bool linear_part,
         bool mixed, double ridge, bool full, int n_threads, const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights);
        const LabelKernel label = label_kernel(label_factor);
        const Fourier features(view_matrix(frequencies), linear_part);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return solve_features(features, samples, label, ridge, nullptr, full,
                                mixed ? Precision::kMixed : Precision::kFloat64, parallel);
        });
      });
  module.def("ckce_cholesky",
             [](const py::array& probs, const Labels& labels, const Weights& weights,
                const std::optional<Doubles>& label_factor, const std::string& kernel,
                double bandwidth, Index rank, double tol, bool random_pivots, std::uint64_t seed,
                double ridge, bool full, int n_threads, const py::object& progress) {
               const Samples samples = view_samples(probs, labels, weights);
               const LabelKernel label = label_kernel(label_factor);
               return run(n_threads, progress, [&](Parallel& parallel) {
                 return solve_cholesky(*make_kernel(kernel, bandwidth), samples, label, rank, tol,
                                       random_pivots ? Pivoting::kRandom : Pivoting::kGreedy, seed,
                                       ridge, full, parallel);
               });
             });
}

}  // namespace ckce
