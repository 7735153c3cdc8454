#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <Eigen/Core>

#include "core/base/memory.hpp"
#include "core/base/sizes.hpp"

namespace ckce {
void bind_input(pybind11::module_& module);             // input.cpp
void bind_features(pybind11::module_& module);          // features.cpp
void bind_ckce(pybind11::module_& module);              // ckce.cpp
void bind_gradient(pybind11::module_& module);          // gradient.cpp
void bind_jkce(pybind11::module_& module);              // jkce.cpp
void bind_ece(pybind11::module_& module);               // ece.cpp
void bind_calibration_test(pybind11::module_& module);  // calibration_test.cpp
void bind_two_classes(pybind11::module_& module);       // two_classes.cpp
void bind_loo(pybind11::module_& module);               // loo.cpp
void bind_common_ground(pybind11::module_& module);     // common_ground.cpp
void bind_miscalibration(pybind11::module_& module);    // miscalibration.cpp
void bind_witness(pybind11::module_& module);           // witness.cpp
void bind_accumulator(pybind11::module_& module);       // accumulator.cpp
void bind_planted(pybind11::module_& module);           // tests/native/planted.cpp
}  // namespace ckce

static void bind_all(pybind11::module_& module) {
  // Eigen cuts products to the caches it finds; fixed sizes keep the bits the same everywhere.
  Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 4 << 20);
  ckce::keep_freed_memory();
  // No Python code may run while pybind11 reads arguments: the interpreter may end a daemon thread
  // there. NumPy's functions are looked up once; enums are of pybind11, since Python reads the
  // value of its own ones.
  pybind11::dtype::of<double>();
  module.attr("THREAD_DOUBLES") = ckce::kThreadDoubles;
  ckce::bind_input(module);
  ckce::bind_features(module);
  ckce::bind_ckce(module);
  ckce::bind_gradient(module);
  ckce::bind_jkce(module);
  ckce::bind_ece(module);
  ckce::bind_calibration_test(module);
  ckce::bind_two_classes(module);
  ckce::bind_loo(module);
  ckce::bind_common_ground(module);
  ckce::bind_miscalibration(module);
  ckce::bind_witness(module);
  ckce::bind_accumulator(module);
#ifdef CKCE_SANITIZE
  ckce::bind_planted(module);
#endif
}

// One of these is the name of the file: bindings are compiled once for all instruction sets.
PYBIND11_MODULE(_core_v2, module, pybind11::mod_gil_not_used()) { bind_all(module); }
PYBIND11_MODULE(_core_v3, module, pybind11::mod_gil_not_used()) { bind_all(module); }
PYBIND11_MODULE(_core_v4, module, pybind11::mod_gil_not_used()) { bind_all(module); }
PYBIND11_MODULE(_core_baseline, module, pybind11::mod_gil_not_used()) { bind_all(module); }
