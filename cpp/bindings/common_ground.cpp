#include "core/metrics/common_ground.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/features/joined.hpp"
#include "core/features/powers.hpp"

namespace ckce {

void bind_common_ground(py::module_& module) {
  module.def(
      "power_features",
      [](Index n_classes) -> std::shared_ptr<Features> {
        return std::make_shared<Powers>(n_classes);
      },
      py::arg("n_classes"));
  module.def(
      "joined_features",
      [](const std::vector<std::shared_ptr<Features>>& parts) -> std::shared_ptr<Features> {
        return std::make_shared<Joined>(
            std::vector<std::shared_ptr<const Features>>(parts.begin(), parts.end()));
      },
      py::arg("parts"));

  py::class_<GroundSums>(module, "GroundSums")
      .def(py::init(
               [](double weight, const Doubles& xx, const Doubles& xr, const Doubles& diagonal) {
                 GroundSums sums(xx.shape(0), xr.shape(1));
                 sums.weight = weight;
                 sums.xx = view_matrix(xx);
                 sums.xr = view_matrix(xr);
                 sums.diagonal = view_matrix(diagonal);
                 return sums;
               }),
           py::kw_only(), py::arg("weight"), py::arg("xx"), py::arg("xr"), py::arg("diagonal"))
      .def_readonly("weight", &GroundSums::weight)
      .def_property_readonly("xx", [](const GroundSums& s) { return to_numpy(s.xx); })
      .def_property_readonly("xr", [](const GroundSums& s) { return to_numpy(s.xr); })
      .def_property_readonly("diagonal", [](const GroundSums& s) { return to_numpy(s.diagonal); })
      .def("add", &GroundSums::add, py::arg("other"));
  py::class_<Balance>(module, "Balance")
      .def(py::init<Index, Index, double, double>(), py::kw_only(), py::arg("columns"),
           py::arg("norm"), py::arg("regularization"), py::arg("eps"));
  py::class_<Ground>(module, "Ground")
      .def_readonly("value_a", &Ground::value_a)
      .def_readonly("value_b", &Ground::value_b)
      .def_readonly("share", &Ground::share);
  py::class_<GroundSpread>(module, "GroundSpread")
      .def_property_readonly("influence",
                             [](const GroundSpread& s) { return to_numpy(s.influence); })
      .def("add", &GroundSpread::add, py::arg("other"))
      .def("largest", &GroundSpread::largest, py::arg("weight"));

  module.def(
      "ground_sums",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Features& features, int n_threads,
         const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights, features);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return ground_sums(features, samples, label, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("features"), py::arg("n_threads"),
      py::arg("progress"));
  module.def(
      "common_ground",
      [](const GroundSums& sums_a, const GroundSums& sums_b, const std::vector<Balance>& balances,
         int n_threads) {
        return run(n_threads, py::none(), [&](Parallel& parallel) {
          return common_ground(sums_a, sums_b, balances, parallel);
        });
      },
      py::kw_only(), py::arg("sums_a"), py::arg("sums_b"), py::arg("balances"),
      py::arg("n_threads"));
  module.def(
      "own_ground",
      [](const GroundSums& sums_a, const GroundSums& sums_b, Index norm, double regularization,
         int n_threads) {
        return run(n_threads, py::none(), [&](Parallel& parallel) {
          return own_ground(sums_a, sums_b, norm, regularization, parallel);
        });
      },
      py::kw_only(), py::arg("sums_a"), py::arg("sums_b"), py::arg("norm"),
      py::arg("regularization"), py::arg("n_threads"));
  module.def(
      "ground_spread",
      [](const py::array& probs_a, const Labels& labels_a, const py::array& probs_b,
         const Labels& labels_b, const Weights& weights, const Factor& label_factor,
         const Codes& groups, const Features& features, const std::vector<Ground>& grounds,
         int n_threads, const py::object& progress) {
        Samples a = view_samples(probs_a, labels_a, weights, features);
        const Samples b = view_samples(probs_b, labels_b, weights, features);
        const std::optional<Groups> grouped = groups_of(groups, a);
        a.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        if (a.n() != b.n()) throw py::type_error("rows must be paired");
        return run(n_threads, progress, [&](Parallel& parallel) {
          return ground_spread(features, a, b, grounds, label, parallel);
        });
      },
      py::arg("probs_a"), py::arg("labels_a"), py::arg("probs_b"), py::arg("labels_b"),
      py::arg("weights"), py::arg("label_factor"), py::kw_only(), py::arg("groups") = py::none(),
      py::arg("features"), py::arg("grounds"), py::arg("n_threads"), py::arg("progress"));
}

}  // namespace ckce
