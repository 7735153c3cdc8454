// A call into the core: without the GIL, with Ctrl-C and progress.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

#include "core/base/parallel.hpp"

namespace py = pybind11;

namespace ckce {

struct Interrupted {};  // the Python error indicator is set

// Gives the GIL away for as long as it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() { take(); }

  // Takes the GIL for work(), and gives it away again.
  template <class Work>
  void with_gil(Work work) {
    take();
    try {
      work();
#ifdef __GLIBCXX__
    } catch (const abi::__forced_unwind&) {
      wait_for_the_end();
#endif
    } catch (...) {
      give();
      throw;
    }
    give();
  }

 private:
  // While the interpreter ends, Python (up to 3.13) ends a daemon thread that asks for the GIL, or
  // already waits, by unwinding it: through destructors, which cannot be unwound. The thread waits
  // for the end of the process instead; to leave the handler would abort. It asks with the state
  // that it has: to look for one, as pybind11 does, needs an interpreter.
  void take() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      wait_for_the_end();
    }
  }
  [[noreturn]] static void wait_for_the_end() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  void give() { state_ = PyEval_SaveThread(); }

  PyThreadState* state_;
};

// Runs work(parallel) without the GIL; asks Python for signals, and reports progress, from the
// calling thread.
template <class Work>
auto run(int n_threads, const py::object& progress, Work work) {
  try {
    WithoutGil no_gil;
    Parallel parallel(n_threads, [&no_gil, &progress](double fraction) {
      no_gil.with_gil([&progress, fraction] {
        if (PyErr_CheckSignals() != 0) throw Interrupted();
        if (progress.is_none()) return;
        // Without C++ objects, whose destructors would need the GIL where Python ends the thread.
        PyObject* done = PyObject_CallFunction(progress.ptr(), "d", fraction);
        if (done == nullptr) throw Interrupted();
        Py_DECREF(done);
      });
    });
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
