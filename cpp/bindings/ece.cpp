// Binned calibration errors and scoring rules.
#include "core/metrics/ece.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/metrics/scores.hpp"
#include "core/metrics/smooth_ece.hpp"

namespace ckce {

void bind_ece(py::module_& module) {
  py::class_<Gaps>(module, "Gaps")
      .def_readonly("l1", &Gaps::l1)
      .def_readonly("l2_squared", &Gaps::l2_squared)
      .def_readonly("max", &Gaps::max)
      .def_readonly("refinement", &Gaps::refinement)
      .def_readonly("debias", &Gaps::debias);
  py::class_<ScalarBins>(module, "ScalarBins")
      .def_readonly("gaps", &ScalarBins::gaps)
      .def_readonly("report", &ScalarBins::report)
      .def_property_readonly("edges", [](const ScalarBins& b) { return to_numpy(b.edges); })
      .def_property_readonly("weight", [](const ScalarBins& b) { return to_numpy(b.weight); })
      .def_property_readonly("prob", [](const ScalarBins& b) { return to_numpy(b.prob); })
      .def_property_readonly("hits", [](const ScalarBins& b) { return to_numpy(b.hits); })
      .def_property_readonly("count", [](const ScalarBins& b) { return to_numpy(b.count); });
  py::class_<SimplexBins>(module, "SimplexBins")
      .def_readonly("gaps", &SimplexBins::gaps)
      .def_property_readonly("counts", [](const SimplexBins& b) { return to_numpy(b.counts); });
  py::class_<Scores>(module, "Scores")
      .def_readonly("weight", &Scores::weight)
      .def_readonly("hits", &Scores::hits)
      .def_readonly("confidence", &Scores::confidence)
      .def_readonly("brier", &Scores::brier)
      .def_readonly("log_loss", &Scores::log_loss)
      .def_readonly("sharpness", &Scores::sharpness)
      .def_property_readonly("residual", [](const Scores& s) { return to_numpy(s.residual); })
      .def_property_readonly("labels", [](const Scores& s) { return to_numpy(s.labels); });
  py::class_<SmoothEce>(module, "SmoothEce")
      .def_readonly("value", &SmoothEce::value)
      .def_readonly("bandwidth", &SmoothEce::bandwidth)
      .def_readonly("at_ends", &SmoothEce::at_ends);

  py::enum_<Variant>(module, "Variant")
      .value("top_label", Variant::kTopLabel)
      .value("class_wise", Variant::kClassWise);
  py::enum_<Strategy>(module, "Strategy")
      .value("uniform", Strategy::kUniform)
      .value("quantile", Strategy::kQuantile);

  module.def(
      "ece_scalar",
      [](const py::array& probs, const Labels& labels, const Weights& weights, Variant variant,
         Strategy strategy, Index n_bins, double sum_tolerance, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        return run(n_threads, [&](Parallel& parallel) {
          return ece_scalar(samples, variant, strategy, n_bins, sum_tolerance, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("variant"),
      py::arg("strategy"), py::arg("n_bins"), py::arg("sum_tolerance"), py::arg("n_threads"));
  module.def(
      "ece_simplex",
      [](const py::array& probs, const Labels& labels, const Weights& weights, Index n_bins,
         int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        return run(n_threads,
                   [&](Parallel& parallel) { return ece_simplex(samples, n_bins, parallel); });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("n_bins"),
      py::arg("n_threads"));
  module.def(
      "smooth_ece",
      [](const py::array& probs, const Labels& labels, const Weights& weights, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        return run(n_threads, [&](Parallel& parallel) { return smooth_ece(samples, parallel); });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("n_threads"));
  module.def(
      "scores",
      [](const py::array& probs, const Labels& labels, const Weights& weights, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        return run(n_threads, [&](Parallel& parallel) { return scores(samples, parallel); });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("n_threads"));
}

}  // namespace ckce
