#include "core/binary/two_classes.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/binary/ckce_binary.hpp"
#include "core/binary/grid.hpp"
#include "core/binary/groups_binary.hpp"
#include "core/binary/jkce_binary.hpp"
#include "core/binary/laplace_line.hpp"
#include "core/binary/resample_binary.hpp"
#include "core/binary/witness_binary.hpp"

namespace ckce {
namespace {

// True for the Laplace kernel, false for Gaussian parts.
bool is_laplace(const Kernel& kernel, const Samples& samples) {
  if (samples.m() != 2 || kernel.line() == Kernel::Line::kNone)
    throw std::invalid_argument("two classes need a Gaussian or the Laplace kernel");
  return kernel.line() == Kernel::Line::kLaplace;
}

}  // namespace

Solution ckce_two_classes(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          double ridge, bool full, Parallel& parallel) {
  if (is_laplace(kernel, samples))
    return ckce_laplace_line(kernel.bandwidth(), samples, label, ridge, full, parallel);
  return ckce_binary(Grid(kernel.bandwidth()), samples, label, kernel.has_linear_part(), ridge,
                     full, parallel);
}

JkceSums jkce_two_classes(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          bool full, Parallel& parallel) {
  if (samples.groups) {
    Samples independent = samples;
    independent.groups = nullptr;
    JkceSums sums = jkce_two_classes(kernel, independent, label, true, parallel);
    return leave_groups_out(kernel, samples, label, std::move(sums), parallel);
  }
  if (is_laplace(kernel, samples))
    return jkce_laplace_line(kernel.bandwidth(), samples, label, full, parallel);
  return jkce_binary(Grid(kernel.bandwidth()), samples, label, kernel.has_linear_part(), full,
                     parallel);
}

Matrix resample_two_classes(const Kernel& kernel, const Samples& samples, double ridge,
                            Index n_resamples, std::uint64_t seed, Index table,
                            Parallel& parallel) {
  if (is_laplace(kernel, samples))
    throw std::invalid_argument("the test of two classes needs a Gaussian kernel");
  return resample_binary(Grid(kernel.bandwidth()), samples, kernel.has_linear_part(), ridge,
                         n_resamples, seed, table, parallel);
}

Matrix own_witness_two_classes(const Kernel& kernel, const Samples& samples, double ridge,
                               Parallel& parallel) {
  if (is_laplace(kernel, samples))
    throw std::invalid_argument("cells of two classes need a Gaussian kernel");
  return own_witness_binary(Grid(kernel.bandwidth()), samples, kernel.has_linear_part(), ridge,
                            parallel);
}

double price_two_classes(const Kernel& kernel, double n, bool full) {
  if (kernel.line() != Kernel::Line::kGaussian) return 96.0 * n;
  const BinaryPrice price =
      binary_price(Grid(kernel.bandwidth()), n, full ? Depth::kEstimate : Depth::kValue);
  return price.state + price.solve + (full ? 8.0 * n : 0.0);
}

double price_resamples(const Kernel& kernel, double n, double n_resamples, double table) {
  const BinaryPrice price = binary_price(Grid(kernel.bandwidth()), n, Depth::kEstimate);
  const double sets = std::min(n_resamples, static_cast<double>(kTestSets));
  return price.state + price.solve + 8.0 * std::min(table, price.rank * sets);
}

}  // namespace ckce
