#include "core/metrics/jkce.hpp"

#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {

void bind_jkce(py::module_& module) {
  py::class_<JkceSums>(module, "JkceSums")
      .def_readonly("off_diagonal", &JkceSums::off_diagonal)
      .def_readonly("diagonal", &JkceSums::diagonal)
      .def_property_readonly("rows", [](const JkceSums& s) { return to_numpy(s.rows); });

  module.def(
      "jkce_exact",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Kernel& kernel, bool full,
         int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return jkce_exact(kernel, samples, label, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("kernel"), py::arg("full"),
      py::arg("n_threads"), py::arg("progress"));
  module.def(
      "jkce_gram",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Doubles& gram, bool full) {
        Samples samples = view_samples(probs, labels, weights);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(1,
                   [&](Parallel&) { return jkce_gram(view_matrix(gram), samples, label, full); });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("gram"), py::arg("full"));
  module.def(
      "jkce_features",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Codes& groups, const Features& features, bool full,
         int n_threads, const py::object& progress) {
        Samples samples = view_samples(probs, labels, weights, features);
        const std::optional<Groups> grouped = groups_of(groups, samples);
        samples.groups = grouped ? &*grouped : nullptr;
        const LabelKernel label = label_kernel(label_factor);
        return run(n_threads, progress, [&](Parallel& parallel) {
          return jkce_features(features, samples, label, full, parallel);
        });
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("groups") = py::none(), py::arg("features"), py::arg("full"),
      py::arg("n_threads"), py::arg("progress"));
  module.def(
      "jkce_blocks",
      [](const py::array& probs, const Labels& labels, const Weights& weights,
         const Factor& label_factor, const Kernel& kernel, Index block_size, int n_threads,
         const py::object& progress) {
        const Samples samples = view_samples(probs, labels, weights);
        const LabelKernel label = label_kernel(label_factor);
        return to_numpy(run(n_threads, progress, [&](Parallel& parallel) {
          return jkce_blocks(kernel, samples, label, block_size, parallel);
        }));
      },
      py::arg("probs"), py::arg("labels"), py::arg("weights"), py::arg("label_factor"),
      py::kw_only(), py::arg("kernel"), py::arg("block_size"), py::arg("n_threads"),
      py::arg("progress"));
}

}  // namespace ckce
