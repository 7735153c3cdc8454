#include "core/stream/accumulator.hpp"

#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/stream/cell_accumulator.hpp"

namespace ckce {
namespace {

void bind_states(py::module_& module) {
  py::class_<AccumulatorState>(module, "AccumulatorState")
      .def_property_readonly("sums",
                             [](const AccumulatorState& s) { return to_numpy(s.sums.pack()); })
      .def_property_readonly("tail_probs",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_probs); })
      .def_property_readonly("tail_labels",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_labels); })
      .def_property_readonly("tail_weights",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_weights); });
  py::class_<AccumulatorResult>(module, "AccumulatorResult")
      .def_readonly("rows", &AccumulatorResult::rows)
      .def_readonly("scores", &AccumulatorResult::scores)
      .def_property_readonly("bins", [](const AccumulatorResult& r) { return to_numpy(r.bins); })
      .def_readonly("regularization", &AccumulatorResult::regularization)
      .def_readonly("solution", &AccumulatorResult::solution)
      .def_readonly("missing", &AccumulatorResult::missing)
      .def_readonly("off_diagonal", &AccumulatorResult::off_diagonal)
      .def_readonly("diagonal", &AccumulatorResult::diagonal)
      .def_readonly("influence_square", &AccumulatorResult::influence_square)
      .def_readonly("rows_square", &AccumulatorResult::rows_square);
  py::class_<CellState>(module, "CellState")
      .def_property_readonly("sums", [](const CellState& s) { return to_numpy(s.sums.pack()); })
      .def_property_readonly("cells",
                             [](const CellState& s) {
                               const PackedCells packed = pack_cells(s.sums.cells);
                               return py::make_tuple(to_numpy(packed.ids), to_numpy(packed.points),
                                                     to_numpy(packed.numbers));
                             })
      .def_property_readonly("tail_probs",
                             [](const CellState& s) { return to_numpy(s.tail_probs); })
      .def_property_readonly("tail_labels",
                             [](const CellState& s) { return to_numpy(s.tail_labels); })
      .def_property_readonly("tail_weights",
                             [](const CellState& s) { return to_numpy(s.tail_weights); });
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

void merge_cells(CellAccumulator& self, const Row& sums, const Labels& ids, const Labels& points,
                 const Row& numbers, const Doubles& tail_probs, const Labels& tail_labels,
                 const Weights& tail_weights, int n_threads) {
  const Samples tail = view_samples(tail_probs, tail_labels, tail_weights);
  CellTally tally = self.empty();
  tally.unpack(view_vector(sums), {{ids.data(), ids.data() + ids.size()},
                                   {points.data(), points.data() + points.size()},
                                   view_vector(numbers)});
  run(n_threads, [&](Parallel& parallel) {
    self.merge(CellAccumulator::make_state(std::move(tally), tail), parallel);
  });
}

void bind_cells(py::module_& module) {
  py::class_<CellAccumulator>(module, "CellAccumulator")
      .def(py::init([](double bandwidth, bool linear_part, const Factor& label_factor, Index n_bins,
                       std::optional<Index> predicted) {
             return std::make_unique<CellAccumulator>(
                 bandwidth, linear_part, label_kernel(label_factor), n_bins, predicted);
           }),
           py::kw_only(), py::arg("bandwidth"), py::arg("linear_part"), py::arg("label_factor"),
           py::arg("n_bins"), py::arg("predicted"))
      .def_property_readonly("n_cells",
                             [](const CellAccumulator& self) { return self.grid().cells; })
      .def_property_readonly("nodes", [](const CellAccumulator& self) { return self.grid().nodes; })
      .def(
          "update",
          [](CellAccumulator& self, const py::array& probs, const Labels& labels,
             const Weights& weights, int n_threads) {
            const Samples samples = view_samples(probs, labels, weights);
            if (samples.m() != 2) throw py::type_error("probs must have two columns");
            run(n_threads, [&](Parallel& parallel) { self.update(samples, parallel); });
          },
          py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(),
          py::arg("n_threads"))
      .def(
          "merge",
          [](CellAccumulator& self, const CellState& other, int n_threads) {
            run(n_threads, [&](Parallel& parallel) { self.merge(other, parallel); });
          },
          py::arg("other"), py::kw_only(), py::arg("n_threads"))
      .def("merge_arrays", &merge_cells, py::arg("sums"), py::arg("ids"), py::arg("points"),
           py::arg("numbers"), py::arg("tail_probs"), py::arg("tail_labels"),
           py::arg("tail_weights"), py::kw_only(), py::arg("n_threads"))
      .def(
          "merge_dense",
          [](CellAccumulator& self, const Row& sums, int n_threads) {
            CellTally tally = self.empty();
            tally.unpack_dense(view_vector(sums));
            run(n_threads, [&](Parallel& parallel) {
              self.merge(CellState{tally, Matrix(0, 2), {}, Vector(0)}, parallel);
            });
          },
          py::arg("sums"), py::kw_only(), py::arg("n_threads"))
      .def("state",
           [](const CellAccumulator& self) {
             return run(1, [&](Parallel& parallel) { return self.state(parallel); });
           })
      .def("settled",
           [](const CellAccumulator& self) {
             return to_numpy(
                 run(1, [&](Parallel& parallel) { return self.settled(parallel).pack_dense(); }));
           })
      .def("state_price",
           [](const CellAccumulator& self) {
             return run(1, [&](Parallel& parallel) { return self.state_price(parallel); });
           })
      .def("solve_price",
           [](const CellAccumulator& self) {
             return run(1, [&](Parallel& parallel) { return self.solve_price(parallel); });
           })
      .def("rows",
           [](const CellAccumulator& self) {
             return run(1, [&](Parallel& parallel) { return self.rows(parallel); });
           })
      .def(
          "witness",
          [](const CellAccumulator& self, std::optional<double> regularization, int n_threads) {
            return to_numpy(run(n_threads, [&](Parallel& parallel) {
              return self.witness(regularization, parallel);
            }));
          },
          py::kw_only(), py::arg("regularization"), py::arg("n_threads"))
      .def(
          "solve",
          [](const CellAccumulator& self, std::optional<double> regularization, int n_threads) {
            return run(n_threads,
                       [&](Parallel& parallel) { return self.solve(regularization, parallel); });
          },
          py::kw_only(), py::arg("regularization"), py::arg("n_threads"));
}

}  // namespace

void bind_accumulator(py::module_& module) {
  bind_states(module);
  bind_cells(module);
  py::class_<Accumulator>(module, "Accumulator")
      .def(py::init([](const std::shared_ptr<Features>& features, Index n_classes,
                       const Factor& label_factor, bool scattered, bool debias, Index n_bins,
                       std::optional<Index> predicted) {
             if (features->m() != n_classes)
               throw py::type_error("features must be of n_classes classes");
             return std::make_unique<Accumulator>(features, label_kernel(label_factor), scattered,
                                                  debias, n_bins, predicted);
           }),
           py::arg("features").none(false), py::kw_only(), py::arg("n_classes"),
           py::arg("label_factor"), py::arg("scattered"), py::arg("debias"), py::arg("n_bins"),
           py::arg("predicted"))
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
          "witness",
          [](const Accumulator& self, std::optional<double> regularization, int n_threads) {
            return to_numpy(run(n_threads, [&](Parallel& parallel) {
              return self.witness(regularization, parallel);
            }));
          },
          py::kw_only(), py::arg("regularization"), py::arg("n_threads"))
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
