#include "core/metrics/miscalibration.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/metrics/correction.hpp"

namespace ckce {

void bind_miscalibration(py::module_& module) {
  py::class_<Miscalibration>(module, "Miscalibration")
      .def_readonly("value", &Miscalibration::value)
      .def_property_readonly("regularization",
                             [](const Miscalibration& s) { return s.smoother.regularization; })
      .def_property_readonly("df", [](const Miscalibration& s) { return s.smoother.df; })
      .def_property_readonly("null_sd", [](const Miscalibration& s) { return s.smoother.null_sd; })
      .def_property_readonly("influence",
                             [](const Miscalibration& s) { return to_numpy(s.influence); })
      .def_property_readonly("coefficients",
                             [](const Miscalibration& s) { return to_numpy(s.coefficients); })
      .def_property_readonly("fit", [](const Miscalibration& s) { return to_numpy(s.fit); });

  module.def(
      "miscalibration",
      [](const py::array& probs, const Labels& labels, const Weights& weights, const Codes& groups,
         const Features& features, int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights, features);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        return run(n_threads, progress,
                   [&](Parallel& parallel) { return miscalibration(features, samples, parallel); });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(),
      py::arg("groups") = py::none(), py::arg("features"), py::arg("n_threads"),
      py::arg("progress"));
  module.def(
      "correction",
      [](const py::array& probs, const Features& features, const Doubles& coefficients,
         const Row& fit, int n_threads) {
        const Probs view = view_probs(probs);
        const Matrix factors = view_matrix(coefficients);
        const Vector shapes = view_vector(fit);
        if (view.m != features.m() || factors.rows() != features.d() || factors.cols() != view.m ||
            (shapes.size() != 0 && shapes.size() != kShapes))
          throw py::type_error("features, coefficients and probs must be of the same classes");
        return to_numpy(run(n_threads, [&](Parallel& parallel) {
          return correction(features, view, factors, shapes, parallel);
        }));
      },
      py::arg("probs"), py::kw_only(), py::arg("features"), py::arg("coefficients"), py::arg("fit"),
      py::arg("n_threads"));
  module.def(
      "own_correction",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Features& features, const Miscalibration& found, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights, features);
        return to_numpy(run(n_threads, [&](Parallel& parallel) {
          return own_correction(features, samples, found, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("features"),
      py::arg("found"), py::arg("n_threads"));
  module.def(
      "correction_errors",
      [](const py::array& probs, const Labels& labels, const Weights& weights, const Codes& groups,
         const Features& features, const Miscalibration& found, const py::array& at, Index first,
         Index classes, Index draws, std::uint64_t seed, int n_threads,
         const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights, features);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const Probs where = view_probs(at);
        if (where.m != samples.m())
          throw py::type_error("probs and at must be of the same classes");
        if (first < 0 || classes < 1 || first + classes > samples.m())
          throw py::type_error("first and classes must be some of the classes");
        const CorrectionErrors errors = run(n_threads, progress, [&](Parallel& parallel) {
          return correction_errors(features, samples, found, where, first, classes, draws, seed,
                                   parallel);
        });
        return py::make_tuple(to_numpy(errors.draws), to_numpy(errors.variance),
                              to_numpy(errors.again), to_numpy(errors.freedom));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(),
      py::arg("groups") = py::none(), py::arg("features"), py::arg("found"), py::arg("at"),
      py::arg("first"), py::arg("classes"), py::arg("draws"), py::arg("seed"), py::arg("n_threads"),
      py::arg("progress"));
}

}  // namespace ckce
