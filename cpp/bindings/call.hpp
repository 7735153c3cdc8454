// A call into the core: without the GIL, with Ctrl-C and progress.
#pragma once

#include <pybind11/pybind11.h>

#include "core/base/parallel.hpp"

namespace py = pybind11;

namespace ckce {

struct Interrupted {};  // the Python error indicator is set

// Runs work(parallel) without the GIL; asks Python for signals, and reports progress, from the
// calling thread.
template <class Work>
auto run(int n_threads, const py::object& progress, Work work) {
  Parallel parallel(n_threads, [&progress](double fraction) {
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw Interrupted();
    if (!progress.is_none()) progress(fraction);
  });
  try {
    const py::gil_scoped_release no_gil;
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
