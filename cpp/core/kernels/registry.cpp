// The one list of kernels: a new kernel is a file beside this one and a line in `make_kernel`.
#include <stdexcept>

#include "core/kernels/gaussian.hpp"
#include "core/kernels/laplace.hpp"
#include "core/kernels/linear.hpp"
#include "core/kernels/linear_gaussian.hpp"

namespace ckce {

std::unique_ptr<Kernel> make_kernel(const std::string& name, double bandwidth) {
  if (name == Linear::name) return std::make_unique<Linear>();
  if (name == Gaussian::name) return std::make_unique<Gaussian>(bandwidth);
  if (name == LinearGaussian::name) return std::make_unique<LinearGaussian>(bandwidth);
  if (name == Laplace::name) return std::make_unique<Laplace>(bandwidth);
  throw std::invalid_argument("kernel must be a registered name, got '" + name + "'");
}

}  // namespace ckce
