// A call into the core: without the GIL, with Ctrl-C and progress.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <optional>
#include <thread>

#include "core/base/parallel.hpp"

namespace py = pybind11;

namespace ckce {

struct Interrupted {};  // the Python error indicator is set

// Asks for the GIL. While the interpreter ends, Python (up to 3.13) ends a daemon thread that asks,
// or already waits, by unwinding it: through destructors, which cannot be unwound. The thread waits
// for the end of the process here instead; to leave the handler would abort.
template <class Ask>
void ask_for_gil(Ask ask) {
  try {
    ask();
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

// Releases the GIL for as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    ask_for_gil([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_;
};

// Runs work(parallel) without the GIL; asks Python for signals, and reports progress, from the
// calling thread.
template <class Work>
auto run(int n_threads, const py::object& progress, Work work) {
  Parallel parallel(n_threads, [&progress](double fraction) {
    std::optional<py::gil_scoped_acquire> gil;
    ask_for_gil([&gil] { gil.emplace(); });
    if (PyErr_CheckSignals() != 0) throw Interrupted();
    if (!progress.is_none()) progress(fraction);
  });
  try {
    const WithoutGil no_gil;
    return work(parallel);
  } catch (const Interrupted&) {
    throw py::error_already_set();
  }
}

template <class Work>
auto run(int n_threads, Work work) {
  return run(n_threads, py::none(), work);
}

}  // namespace ckce
