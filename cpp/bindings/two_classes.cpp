#include "core/binary/two_classes.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"
#include "core/binary/grid.hpp"

namespace ckce {

void bind_two_classes(py::module_& module) {
  module.attr("LEAST_BANDWIDTH") = kLeastBandwidth;
  module.def(
      "ckce_two_classes",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Kernel& kernel, double ridge,
         bool full, int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return ckce_two_classes(kernel, samples, label, ridge, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("kernel"), py::arg("ridge"),
      py::arg("full"), py::arg("n_threads"), py::arg("progress"));
  module.def(
      "jkce_two_classes",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Kernel& kernel, bool full,
         int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return jkce_two_classes(kernel, samples, label, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("kernel"), py::arg("full"),
      py::arg("n_threads"), py::arg("progress"));
  module.def(
      "resample_two_classes",
      [](const py::array& probs, const Labels& labels, const Kernel& kernel, double ridge,
         Index n_resamples, std::uint64_t seed, Index table, int n_threads,
         const py::object& progress) {
        const Samples samples = view_samples(probs, labels, std::nullopt);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return resample_two_classes(kernel, samples, ridge, n_resamples, seed, table, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::kw_only(), py::arg("kernel"), py::arg("ridge"),
      py::arg("n_resamples"), py::arg("seed"), py::arg("table"), py::arg("n_threads"),
      py::arg("progress"));
  module.def(
      "own_witness_two_classes",
      [](const py::array& probs, const Labels& labels, const Weights& weights, const Kernel& kernel,
         double ridge, int n_threads, const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return own_witness_two_classes(kernel, samples, ridge, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::kw_only(), py::arg("kernel"),
      py::arg("ridge"), py::arg("n_threads"), py::arg("progress"));
  module.def("price_two_classes", &price_two_classes, py::kw_only(), py::arg("kernel"),
             py::arg("n"), py::arg("full"));
  module.def("price_resamples", &price_resamples, py::kw_only(), py::arg("kernel"), py::arg("n"),
             py::arg("n_resamples"), py::arg("table"));
}

}  // namespace ckce
