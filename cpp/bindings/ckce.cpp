#include "core/metrics/ckce.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {

void bind_ckce(py::module_& module) {
  py::class_<Solution>(module, "Solution")
      .def_readonly("value", &Solution::value)
      .def_readonly("bound", &Solution::bound)
      .def_readonly("debias", &Solution::debias)
      .def_readonly("floor", &Solution::floor)
      .def_readonly("iterations", &Solution::iterations)
      .def_readonly("debias_rank", &Solution::debias_rank)
      .def_readonly("debias_error", &Solution::debias_error)
      .def_property_readonly("influence", [](const Solution& s) { return to_numpy(s.influence); })
      .def_property_readonly("per_class", [](const Solution& s) { return to_numpy(s.per_class); })
      .def_property_readonly("replicates",
                             [](const Solution& s) { return to_numpy(s.replicates); });
  py::enum_<Solver>(module, "Solver")
      .value("factorise", Solver::kFactorise)
      .value("iterate", Solver::kIterate)
      .value("blocks", Solver::kBlocks);
  py::enum_<Precision>(module, "Precision")
      .value("float64", Precision::kFloat64)
      .value("mixed", Precision::kMixed);
  module.attr("FACTORISATION_LIMIT") = kFactorisationLimit;

  module.def(
      "ckce_exact",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Kernel& kernel, double ridge,
         double tol, Solver solver, bool full, int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return ckce_exact(kernel, samples, label, ridge, tol, solver, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("kernel"), py::arg("ridge"),
      py::arg("tol"), py::arg("solver"), py::arg("full"), py::arg("n_threads"),
      py::arg("progress"));
  module.def(
      "ckce_gram",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Doubles& gram, double ridge,
         bool full, int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return ckce_gram(view_matrix(gram), 0.0, samples, label, ridge, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("gram"), py::arg("ridge"),
      py::arg("full"), py::arg("n_threads"), py::arg("progress"));
  module.def(
      "ckce_features",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Features& features, double ridge,
         Precision precision, bool full, int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights, features);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return ckce_features(features, samples, label, ridge, precision, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("features"), py::arg("ridge"),
      py::arg("precision"), py::arg("full"), py::arg("n_threads"), py::arg("progress"));
}

}  // namespace ckce
