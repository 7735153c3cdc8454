// Binned calibration errors and scoring rules.
#include "bindings.hpp"
#include "core/ece.hpp"
#include "core/scores.hpp"

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
      .def_property_readonly("counts", [](const SimplexBins& b) {
        return py::array_t<std::int64_t>(static_cast<Index>(b.counts.size()), b.counts.data());
      });
  py::class_<Scores>(module, "Scores")
      .def_readonly("weight", &Scores::weight)
      .def_readonly("hits", &Scores::hits)
      .def_readonly("confidence", &Scores::confidence)
      .def_readonly("brier", &Scores::brier)
      .def_readonly("log_loss", &Scores::log_loss)
      .def_readonly("sharpness", &Scores::sharpness)
      .def_property_readonly("residual", [](const Scores& s) { return to_numpy(s.residual); })
      .def_property_readonly("labels", [](const Scores& s) { return to_numpy(s.labels); });

  module.def("ece_scalar",
             [](const py::array& probs, const Labels& labels, const Weights& weights,
                bool class_wise, bool quantile, Index n_bins, double sum_tolerance, int n_threads) {
               const Samples samples = view_samples(probs, labels, weights);
               return run(n_threads, py::none(), [&](Parallel& parallel) {
                 return ece_scalar(samples, class_wise ? Variant::kClassWise : Variant::kTopLabel,
                                   quantile ? Strategy::kQuantile : Strategy::kUniform, n_bins,
                                   sum_tolerance, parallel);
               });
             });
  module.def("ece_simplex", [](const py::array& probs, const Labels& labels, const Weights& weights,
                               Index n_bins, int n_threads) {
    const Samples samples = view_samples(probs, labels, weights);
    return run(n_threads, py::none(),
               [&](Parallel& parallel) { return ece_simplex(samples, n_bins, parallel); });
  });
  module.def("scores", [](const py::array& probs, const Labels& labels, const Weights& weights,
                          int n_threads) {
    const Samples samples = view_samples(probs, labels, weights);
    return run(n_threads, py::none(),
               [&](Parallel& parallel) { return scores(samples, parallel); });
  });
}

}  // namespace ckce
