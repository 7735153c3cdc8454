// A call into the core: without the GIL, with Ctrl-C and progress.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>

#include "core/base/parallel.hpp"

namespace py = pybind11;

namespace ckce {

struct Interrupted {};  // the Python error indicator is set

// While the interpreter ends, a daemon thread must not ask for the GIL: Python would end the thread
// by unwinding it, through code that cannot be unwound. It waits for the end of the process here.
inline void stay_away_from_the_end() {
#if PY_VERSION_HEX >= 0x030D0000
  const bool ends = Py_IsFinalizing() != 0;
#else
  const bool ends = _Py_IsFinalizing() != 0;
#endif
  while (ends) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Releases the GIL for as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    stay_away_from_the_end();
    PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

// Runs work(parallel) without the GIL; asks Python for signals, and reports progress, from the
// calling thread.
template <class Work>
auto run(int n_threads, const py::object& progress, Work work) {
  Parallel parallel(n_threads, [&progress](double fraction) {
    stay_away_from_the_end();
    const py::gil_scoped_acquire gil;
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
