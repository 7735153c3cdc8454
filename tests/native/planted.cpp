// Only in builds with CKCE_SANITIZE: one bug of each kind, with which .ci/sanitize sees that its
// job would find it.
#include "bindings/arrays.hpp"
#include "bindings/call.hpp"

namespace ckce {
namespace {

double planted(const std::string& bug) {
  Vector zeros = Vector::Zero(8);
  volatile Index past_the_end = zeros.size();
  if (bug == "address") return zeros.data()[past_the_end];
  if (bug == "assert") return zeros[past_the_end];
  if (bug == "undefined") return static_cast<double>((past_the_end << 62) * past_the_end);
  if (bug == "thread") {
    Parallel parallel(2);
    parallel.each(64, [&] {
      return [&](Index) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // both threads get a task
        zeros[0] += 1.0;
      };
    });
    return zeros[0];
  }
  throw py::value_error("no such bug: " + bug);
}

}  // namespace

void bind_planted(py::module_& module) { module.def("_planted", &planted); }

}  // namespace ckce
