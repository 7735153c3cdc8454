#include "bindings.hpp"
#include "core/accumulator.hpp"
#include "core/features/fourier.hpp"
#include "core/features/landmarks.hpp"
#include "core/features/linear.hpp"

namespace ckce {

void bind_accumulator(py::module_& module) {
  py::class_<AccumulatorState>(module, "AccumulatorState")
      .def_property_readonly("sums",
                             [](const AccumulatorState& s) { return to_numpy(s.tally.pack()); })
      .def_property_readonly("tail_probs",
                             [](const AccumulatorState& s) { return to_numpy(s.tail_probs); })
      .def_property_readonly("tail_labels",
                             [](const AccumulatorState& s) {
                               return py::array_t<std::int64_t>(
                                   static_cast<Index>(s.tail_labels.size()), s.tail_labels.data());
                             })
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
  py::class_<Accumulator>(module, "Accumulator")
      .def("update",
           [](Accumulator& self, const py::array& probs, const Labels& labels,
              const Weights& weights, int n_threads) {
             const Samples samples = view_samples(probs, labels, weights);
             run(n_threads, py::none(),
                 [&](Parallel& parallel) { self.update(samples, parallel); });
           })
      .def("merge",
           [](Accumulator& self, const AccumulatorState& other, int n_threads) {
             run(n_threads, py::none(), [&](Parallel& parallel) { self.merge(other, parallel); });
           })
      .def("merge_arrays",
           [](Accumulator& self, const Weights& sums, const Doubles& tail_probs,
              const Labels& tail_labels, const Weights& tail_weights, int n_threads) {
             AccumulatorState state{
                 self.empty(), view_matrix(tail_probs),
                 std::vector<std::int64_t>(tail_labels.data(),
                                           tail_labels.data() + tail_labels.size()),
                 view_vector(*tail_weights)};
             state.tally.unpack(view_vector(*sums));
             run(n_threads, py::none(), [&](Parallel& parallel) { self.merge(state, parallel); });
           })
      .def("state",
           [](const Accumulator& self) {
             return run(1, py::none(), [&](Parallel& parallel) { return self.state(parallel); });
           })
      .def("settled",
           [](const Accumulator& self) {
             return to_numpy(run(
                 1, py::none(), [&](Parallel& parallel) { return self.settled(parallel).pack(); }));
           })
      .def("rows",
           [](const Accumulator& self) {
             return run(1, py::none(), [&](Parallel& parallel) { return self.rows(parallel); });
           })
      .def("solve", [](const Accumulator& self, std::optional<double> regularization, bool full,
                       int n_threads) {
        return run(n_threads, py::none(),
                   [&](Parallel& parallel) { return self.solve(regularization, full, parallel); });
      });

  module.def("chebyshev_factor", [](const Doubles& frequencies) {
    return to_numpy(chebyshev_factor(view_matrix(frequencies)));
  });
  module.def("fourier_accumulator", [](const Doubles& frequencies, const Doubles& chebyshev,
                                       bool linear_part, const std::optional<Doubles>& label_factor,
                                       bool scattered, bool debias, Index n_bins) {
    return std::make_unique<Accumulator>(
        std::make_unique<Fourier>(view_matrix(frequencies), view_matrix(chebyshev), linear_part),
        frequencies.shape(1), label_kernel(label_factor), scattered, debias, n_bins);
  });
  module.def(
      "choose_landmarks", [](const py::array& sample, const std::string& kernel, double bandwidth,
                             Index count, std::uint64_t seed, int n_threads) {
        const Probs probs = view_probs(sample);
        return run(n_threads, py::none(), [&](Parallel& parallel) {
          return choose_landmarks(*make_kernel(kernel, bandwidth), probs, count, seed, parallel);
        });
      });
  module.def("landmark_factor", [](const py::array& landmarks, const std::string& kernel,
                                   double bandwidth, int n_threads) {
    const Probs probs = view_probs(landmarks);
    const LandmarkFactor result = run(n_threads, py::none(), [&](Parallel& parallel) {
      return factor_landmarks(*make_kernel(kernel, bandwidth), probs, parallel);
    });
    return py::make_tuple(to_numpy(result.factor), result.repeated);
  });
  module.def("landmark_accumulator",
             [](const py::array& landmarks, const Doubles& factor, const std::string& kernel,
                double bandwidth, const std::optional<Doubles>& label_factor, bool scattered,
                bool debias, Index n_bins) {
               return std::make_unique<Accumulator>(
                   std::make_unique<Landmarks>(make_kernel(kernel, bandwidth),
                                               view_probs(landmarks), view_matrix(factor)),
                   landmarks.shape(1), label_kernel(label_factor), scattered, debias, n_bins);
             });
  module.def("linear_accumulator", [](Index m, const std::optional<Doubles>& label_factor,
                                      bool scattered, bool debias, Index n_bins) {
    return std::make_unique<Accumulator>(std::make_unique<LinearFeatures>(m), m,
                                         label_kernel(label_factor), scattered, debias, n_bins);
  });
}

}  // namespace ckce
