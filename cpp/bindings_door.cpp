// The door, and what is chosen before an estimate: bandwidth and frequencies.
#include "bindings.hpp"
#include "core/bandwidth.hpp"
#include "core/samplers/sampler.hpp"
#include "core/validate.hpp"

namespace ckce {

void bind_door(py::module_& module) {
  py::class_<Offence>(module, "Offence")
      .def_readonly("count", &Offence::count)
      .def_readonly("row", &Offence::row)
      .def_readonly("column", &Offence::column)
      .def_readonly("value", &Offence::value);
  py::class_<Report>(module, "Report")
      .def_readonly("not_finite", &Report::not_finite)
      .def_readonly("negative", &Report::negative)
      .def_readonly("above_one", &Report::above_one)
      .def_readonly("bad_sum", &Report::bad_sum)
      .def_readonly("bad_label", &Report::bad_label)
      .def_readonly("smallest_label", &Report::smallest_label)
      .def_readonly("largest_label", &Report::largest_label);
  module.def("validate",
             [](const py::array& probs, const Labels& labels, double sum_tolerance, int n_threads) {
               const Samples samples = view_samples(probs, labels, std::nullopt);
               return run(n_threads, py::none(), [&](Parallel& parallel) {
                 return validate(samples, sum_tolerance, parallel);
               });
             });
  module.def("median_distance",
             [](const std::vector<py::array>& probs, const std::vector<Weights>& weights, bool l1,
                std::uint64_t seed, int n_threads) {
               std::vector<Samples> groups(probs.size());
               for (std::size_t i = 0; i < probs.size(); ++i) {
                 groups[i].probs = view_probs(probs[i]);
                 groups[i].weights = weights[i] ? weights[i]->data() : nullptr;
               }
               const MedianDistance median = run(n_threads, py::none(), [&](Parallel& parallel) {
                 return median_distance(groups, l1 ? Norm::kL1 : Norm::kL2, seed, parallel);
               });
               return std::make_pair(median.value, median.positive_value);
             });
  module.def("class_wise_median_distance", [](const py::array& probs, const Labels& labels,
                                              const Weights& weights, bool l1, std::uint64_t seed,
                                              int n_threads) {
    const Samples samples = view_samples(probs, labels, weights);
    const MedianDistance median = run(n_threads, py::none(), [&](Parallel& parallel) {
      return class_wise_median_distance(samples, l1 ? Norm::kL1 : Norm::kL2, seed, parallel);
    });
    return std::make_pair(median.value, median.positive_value);
  });
  module.def("draw_frequencies", [](const std::string& sampler, bool cauchy, Index n_frequencies,
                                    Index m, std::uint64_t seed) {
    return to_numpy(draw_frequencies(sampler, cauchy ? Spectrum::kCauchy : Spectrum::kGaussian,
                                     n_frequencies, m, seed));
  });
}

}  // namespace ckce
