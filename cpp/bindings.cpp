#include "bindings.hpp"

#ifdef CKCE_SANITIZE
namespace ckce {
void bind_planted(py::module_& module);  // bindings_planted.cpp
}
#endif

PYBIND11_MODULE(CKCE_MODULE, module, pybind11::mod_gil_not_used()) {
  // Eigen cuts products to the caches it finds; fixed sizes keep the bits the same everywhere.
  Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 4 << 20);
  ckce::bind_door(module);
  ckce::bind_ckce(module);
  ckce::bind_jkce(module);
  ckce::bind_ece(module);
  ckce::bind_accumulator(module);
  ckce::bind_calibration_test(module);
  ckce::bind_loo(module);
#ifdef CKCE_SANITIZE
  ckce::bind_planted(module);
#endif
}
