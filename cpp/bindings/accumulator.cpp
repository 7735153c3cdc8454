#include "core/stream/accumulator.hpp"

#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {
namespace {

void bind_states(py::module_& module) {
  py::class_<AccumulatorState>(module, "AccumulatorState")
      .def_property_readonly("sums",
                             [](const AccumulatorState& s) { return to_numpy(s.tally.pack()); })
      .def_property_readonly("tail_probs",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_probs); })
      .def_property_readonly("tail_labels",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_labels); })
      .def_property_readonly("tail_weights",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_weights); });
  py::class_<AccumulatorResult>(module, "AccumulatorResult")
      .def_property_readonly("rows", [](const AccumulatorResult& r) { return r.tally.rows; })
      .def_property_readonly("scores", [](const AccumulatorResult& r) { return r.tally.scores; })
      .def_property_readonly("bins",
                             [](const AccumulatorResult& r) { return to_numpy(r.tally.bins); })
      .def_readonly("regularization", &AccumulatorResult::regularization)
      .def_readonly("solution", &AccumulatorResult::solution)
      .def_readonly("missing", &AccumulatorResult::missing)
      .def_readonly("off_diagonal", &AccumulatorResult::off_diagonal)
      .def_readonly("diagonal", &AccumulatorResult::diagonal);
}

void update(Accumulator& self, const py::array& probs, const Labels& labels, const Weights& weights,
            int n_threads) {
  const Samples samples = view_samples(probs, labels, weights, self.features());
  run(n_threads, [&](Parallel& parallel) { self.update(samples, parallel); });
}

void merge(Accumulator& self, const AccumulatorState& other, int n_threads) {
  run(n_threads, [&](Parallel& parallel) { self.merge(other, parallel); });
}

void merge_arrays(Accumulator& self, const Row& sums, const Doubles& tail_probs,
                  const Labels& tail_labels, const Weights& tail_weights, int n_threads) {
  const Samples tail = view_samples(tail_probs, tail_labels, tail_weights, self.features());
  run(n_threads,
      [&](Parallel& parallel) { self.merge(self.unpack(view_vector(sums), tail), parallel); });
}

}  // namespace

void bind_accumulator(py::module_& module) {
  bind_states(module);
  py::class_<Accumulator>(module, "Accumulator")
      .def(py::init([](const std::shared_ptr<Features>& features, Index n_classes,
                       const Factor& label_factor, bool scattered, bool debias, Index n_bins) {
             if (features->m() != n_classes)
               throw py::type_error("features must be of n_classes classes");
             return std::make_unique<Accumulator>(features, label_kernel(label_factor), scattered,
                                                  debias, n_bins);
           }),
           py::arg("features").none(false), py::kw_only(), py::arg("n_classes"),
           py::arg("label_factor"), py::arg("scattered"), py::arg("debias"), py::arg("n_bins"))
      .def("update", &update, py::arg("probs"), py::arg("labels"), py::arg("weights"),
           py::kw_only(), py::arg("n_threads"))
      .def("merge", &merge, py::arg("other"), py::kw_only(), py::arg("n_threads"))
      .def("merge_arrays", &merge_arrays, py::arg("sums"), py::arg("tail_probs"),
           py::arg("tail_labels"), py::arg("tail_weights"), py::kw_only(), py::arg("n_threads"))
      .def("state",
           [](const Accumulator& self) {
             return run(1, [&](Parallel& parallel) { return self.state(parallel); });
           })
      .def("settled",
           [](const Accumulator& self) {
             return to_numpy(
                 run(1, [&](Parallel& parallel) { return self.settled(parallel).pack(); }));
           })
      .def("rows",
           [](const Accumulator& self) {
             return run(1, [&](Parallel& parallel) { return self.rows(parallel); });
           })
      .def(
          "solve",
          [](const Accumulator& self, std::optional<double> regularization, bool full,
             int n_threads) {
            return run(n_threads, [&](Parallel& parallel) {
              return self.solve(regularization, full, parallel);
            });
          },
          py::kw_only(), py::arg("regularization"), py::arg("full"), py::arg("n_threads"));
}

}  // namespace ckce
