// What happens before an estimate: the check of the numbers, the median distance, the frequencies.

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/bandwidth.hpp"
#include "core/samplers/sampler.hpp"
#include "core/top_k.hpp"
#include "core/validate.hpp"

namespace ckce {

void bind_input(py::module_& module) {
  py::class_<Offence>(module, "Offence")
      .def_readonly("count", &Offence::count)
      .def_readonly("row", &Offence::row)
      .def_readonly("column", &Offence::column)
      .def_readonly("value", &Offence::value);
  py::class_<Report>(module, "Report")
      .def_property_readonly("clean", &Report::clean)
      .def_readonly("not_finite", &Report::not_finite)
      .def_readonly("negative", &Report::negative)
      .def_readonly("above_one", &Report::above_one)
      .def_readonly("bad_sum", &Report::bad_sum)
      .def_readonly("bad_label", &Report::bad_label)
      .def_readonly("smallest_label", &Report::smallest_label)
      .def_readonly("largest_label", &Report::largest_label);
  py::enum_<Norm>(module, "Norm").value("l1", Norm::kL1).value("l2", Norm::kL2);
  py::enum_<Counted>(module, "Counted").value("all", Counted::kAll).value("apart", Counted::kApart);
  py::enum_<Spectrum>(module, "Spectrum")
      .value("gaussian", Spectrum::kGaussian)
      .value("cauchy", Spectrum::kCauchy);

  module.def(
      "validate",
      [](const py::array& probs, const Labels& labels, double sum_tolerance, int n_threads) {
        const Samples samples = view_samples(probs, labels, std::nullopt);
        return run(n_threads,
                   [&](Parallel& parallel) { return validate(samples, sum_tolerance, parallel); });
      },
      py::arg("probs"), py::arg("labels"), py::kw_only(), py::arg("sum_tolerance"),
      py::arg("n_threads"));
  module.def(
      "top_k",
      [](const py::array& probs, const Labels& labels, Index k, double sum_tolerance,
         int n_threads) {
        const Samples samples = view_samples(probs, labels, std::nullopt);
        if (k < 1 || k >= samples.m()) throw py::type_error("k must be from 1 to m - 1");
        py::array_t<double> kept({samples.n(), k + 1});
        py::array_t<std::int64_t> ranks(samples.n());
        double* entries = kept.mutable_data();
        std::int64_t* places = ranks.mutable_data();
        const Report report = run(n_threads, [&](Parallel& parallel) {
          return top_k(samples, k, sum_tolerance, entries, places, parallel);
        });
        return py::make_tuple(kept, ranks, report);
      },
      py::arg("probs"), py::arg("labels"), py::kw_only(), py::arg("k"), py::arg("sum_tolerance"),
      py::arg("n_threads"));
  module.def(
      "median_distance",
      [](const std::vector<py::array>& probs, const std::vector<Weights>& weights, Norm norm,
         Counted counted, std::uint64_t seed, int n_threads) {
        const std::vector<Samples> groups = view_groups(probs, weights);
        const MedianDistance median = run(n_threads, [&](Parallel& parallel) {
          return median_distance(groups, norm, counted, seed, parallel);
        });
        return std::make_pair(median.value, median.largest);
      },
      py::arg("probs"), py::arg("weights"), py::kw_only(), py::arg("norm"), py::arg("counted"),
      py::arg("seed"), py::arg("n_threads"));
  module.def(
      "class_wise_median_distance",
      [](const py::array& probs, const Labels& labels, const Weights& weights, Norm norm,
         Counted counted, std::uint64_t seed, int n_threads) {
        const Samples samples = view_samples(probs, labels, weights);
        const MedianDistance median = run(n_threads, [&](Parallel& parallel) {
          return class_wise_median_distance(samples, norm, counted, seed, parallel);
        });
        return std::make_pair(median.value, median.largest);
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("norm"),
      py::arg("counted"), py::arg("seed"), py::arg("n_threads"));
  module.def(
      "draw_frequencies",
      [](const std::string& sampler, Spectrum spectrum, Index n_frequencies, Index n_classes,
         std::uint64_t seed) {
        return to_numpy(draw_frequencies(sampler, spectrum, n_frequencies, n_classes, seed));
      },
      py::kw_only(), py::arg("sampler"), py::arg("spectrum"), py::arg("n_frequencies"),
      py::arg("n_classes"), py::arg("seed"));
}

}  // namespace ckce
