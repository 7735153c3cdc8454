#include "core/binary/grid.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace ckce {
namespace {

constexpr int kBits = 20;  // of the width of a cell: cells up to 2^33 are exact multiples

double few_bits(double x) {
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  const int bits = std::min(kBits, 52 + exponent);
  return std::ldexp(std::floor(std::ldexp(fraction, bits)), exponent - bits);
}

double interpolation_error(double s, Index k) {
  const double lebesgue = 1.0 + 2.0 / 3.14159265358979 * std::log(static_cast<double>(k));
  double error = 2.18 * (1.0 + lebesgue);
  for (Index j = 1; j <= k; ++j) error *= s / std::sqrt(8.0 * static_cast<double>(j));
  return error;
}

}  // namespace

Grid::Grid(double bandwidth_, double tolerance)
    : bandwidth(bandwidth_), width(bandwidth < 1.0 ? few_bits(bandwidth) : 1.0) {
  if (!(bandwidth >= kLeastBandwidth))
    throw std::invalid_argument("bandwidth must be at least 2^-40 for cells, got " +
                                std::to_string(bandwidth));
  cells = std::ceil(1.0 / width);
  for (nodes = 4; nodes < kMostNodes; ++nodes)
    if (interpolation_error(width / bandwidth, nodes) <= tolerance) break;
}

double Grid::error() const {
  const double s = width / bandwidth;
  return interpolation_error(s, nodes) + (cells > 1.0 ? std::exp(-36.0 * s * s) : 0.0);
}

Matrix Grid::coefficients(Parallel& parallel) const {
  // In long double, once: what rounds here is in every entry of K.
  using Long = long double;
  using LongMatrix = Eigen::Matrix<Long, Eigen::Dynamic, Eigen::Dynamic>;
  const Long pi = 3.141592653589793238462643383279502884L;
  const auto k = static_cast<Long>(nodes);
  LongMatrix transform(nodes, nodes);  // values at nodes -> coefficients
  std::vector<Long> x(static_cast<std::size_t>(nodes));
  for (Index a = 0; a < nodes; ++a) {
    const Long angle = pi * (static_cast<Long>(a) + 0.5L) / k;
    x[static_cast<std::size_t>(a)] = std::cos(angle);
    for (Index j = 0; j < nodes; ++j)
      transform(j, a) = (j == 0 ? 1.0L : 2.0L) / k * std::cos(static_cast<Long>(j) * angle);
  }
  const Long s = static_cast<Long>(width) / static_cast<Long>(bandwidth);
  Matrix out((kReach + 1) * nodes, nodes);
  parallel.each_striped(kReach + 1, 4, [&](Index d) {
    LongMatrix values(nodes, nodes);
    for (Index b = 0; b < nodes; ++b)
      for (Index a = 0; a < nodes; ++a) {
        const Long apart = s * (static_cast<Long>(d) + 0.5L * (x[static_cast<std::size_t>(a)] -
                                                               x[static_cast<std::size_t>(b)]));
        values(a, b) = std::exp(-apart * apart);
      }
    const LongMatrix block = transform * values * transform.transpose();
    out.middleRows(d * nodes, nodes) = block.cast<double>();
  });
  return out;
}

std::vector<double> chebyshev_product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> product(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) {
      const double half = 0.5 * a[i] * b[j];
      product[i + j] += half;
      product[i > j ? i - j : j - i] += half;
    }
  return product;
}

}  // namespace ckce
