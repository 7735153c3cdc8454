// Two classes: k(q, q') is a function of p = P(class 1), because |q - q'|^2 = 2 (p - p')^2 and
// <q, q'> = p p' + (1 - p)(1 - p'). [0, 1] is cut into cells at most one bandwidth wide, and in
// each pair of cells exp(-(p - p')^2 / bandwidth^2) is the polynomial that interpolates it at
// Chebyshev nodes:
//
//   K = A M A',   a_i = [T_0(t_i), T_1(t_i), ...] in the block of the cell of p_i,
//   M = [coefficients of the Gaussian for pairs of cells] + N N',   p = a_i'N_1, 1 - p = a_i'N_2
//
// with t in [-1, 1] the place of p in its cell. The coefficients of a pair depend only on how many
// cells lie between its cells, and vanish from kReach on.
//
// Error. For x in units of the bandwidth, Cramer's inequality gives |d^k/dx^k exp(-x^2)| <=
// 1.09 2^(k/2) sqrt(k!), so k nodes in a cell s bandwidths wide leave
//   e_k = 2.18 (s / sqrt(8))^k / sqrt(k!),
// and in both variables together e_k (1 + Lambda_k), where Lambda_k <= 1 + (2 / pi) log k is
// Lebesgue's constant: 8e-16 for s = 1 and k = 18. A pair of cells beyond the reach has |x - x'| >=
// 6 s, so it is left out at the price of exp(-36 s^2), 2.4e-16.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"

namespace ckce {

constexpr Index kReach = 6;                  // cells further apart than this do not see each other
constexpr Index kMostNodes = 24;             // at which the error is 2e-23 whatever the bandwidth
constexpr double kLeastBandwidth = 0x1p-40;  // below, neighbours of p in float64 are too few

struct Grid {
  // Nodes such that interpolation leaves at most `tolerance` of k, at least 4.
  explicit Grid(double bandwidth, double tolerance = 0x1p-50);

  double bandwidth;
  // min(bandwidth, 1), rounded down to so few bits that cell * width and p - cell * width are
  // exact: t is then good to a rounding even where bandwidth << p.
  double width;
  Index nodes = 0;
  double cells = 0.0;  // of [0, 1]

  std::int64_t cell(double p) const {
    const double at = p / width;
    return static_cast<std::int64_t>(at < cells ? at : cells - 1.0);
  }
  double place(double p, std::int64_t cell) const {
    return 2.0 * ((p - static_cast<double>(cell) * width) / width) - 1.0;
  }
  // p = centre + width / 2 T_1(t)
  double centre(std::int64_t cell) const { return (static_cast<double>(cell) + 0.5) * width; }

  // |k - its expansion| of the Gaussian part
  double error() const;
  // Coefficients of the Gaussian between a cell and the kReach + 1 cells from itself upwards, one
  // above the other: ((kReach + 1) nodes, nodes). Row j of block d is the degree in the upper cell.
  Matrix coefficients(Parallel& parallel) const;
};

// Chebyshev series, by T_a T_b = (T_(a+b) + T_|a-b|) / 2.
std::vector<double> chebyshev_product(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ckce
