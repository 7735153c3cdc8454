#include "core/features/landmarks.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "core/features/cholesky.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kKernelRounding = 64.0;  // epsilons by which an entry of K may be off, at most

}  // namespace

std::vector<Index> choose_landmarks(const Kernel& kernel, const Probs& sample, Index count,
                                    double tol, Pivoting pivoting, std::uint64_t seed,
                                    Parallel& parallel) {
  return factor_kernel(kernel, sample, count, tol, pivoting, seed, parallel).pivots();
}

LandmarkFactor factor_landmarks(const Kernel& kernel, const Probs& points, Parallel& parallel) {
  const Points all_points = kernel.points(points, parallel);
  const Gram gram{kernel, all_points};
  Cholesky factor(gram, Pivoting::kGreedy, 0, parallel);
  std::vector<Index> all(as_size(points.n));
  std::iota(all.begin(), all.end(), Index{0});
  factor.add_in_order(gram, all, parallel);
  LandmarkFactor result{factor.rows_of_g(factor.pivots()).triangularView<Eigen::Lower>(), {}};
  std::set_difference(all.begin(), all.end(), factor.pivots().begin(), factor.pivots().end(),
                      std::back_inserter(result.repeated));
  return result;
}

Landmarks::Landmarks(std::shared_ptr<const Kernel> kernel, const Matrix& points, Matrix factor)
    : kernel_(std::move(kernel)),
      mean_(points.colwise().mean().transpose()),
      factor_(std::move(factor)) {
  Parallel alone;
  points_ = kernel_->points(points, mean_, alone);
}

void Landmarks::fill(Index, const In& q, MatrixRef phi) const {
  Parallel alone;
  Matrix tile(kPanel, kPanel);
  for (Index i = 0; i < q.rows(); i += kPanel) {
    const Index rows = std::min(kPanel, q.rows() - i);
    const Points points = kernel_->points(q.middleRows(i, rows), mean_, alone);
    for (Index j = 0; j < points_.q.count(); ++j) {
      const Index columns = std::min(kPanel, d() - j * kPanel);
      kernel_->full_tile(points, 0, points_, j, tile.leftCols(columns));
      phi.block(i, j * kPanel, rows, columns) = tile.topLeftCorner(rows, columns);
    }
  }
  solve_lower_transposed_from_right(factor_, phi);
}

// k_ii - |phi_i|^2 is the difference of sums of d terms, and L L' = K(S, S) + D with D of the size
// of round-off: with a_i = K(S, S)^-1 K(S, q_i) = L^-T phi_i that moves |phi_i|^2 by a_i'D a_i.
Vector Landmarks::left_out(Index, const In& q, const In& phi) const {
  Matrix a = phi.transpose();
  solve_lower_transposed(factor_, a);
  const Vector k = kernel_->diagonal(q);
  const double terms = static_cast<double>(d()) + kKernelRounding;
  return (k - phi.rowwise().squaredNorm()).cwiseMax(0.0) +
         kEpsilon * (terms * k + kKernelRounding * a.colwise().squaredNorm().transpose());
}

double Landmarks::trace(double weight, double sharpness) const {
  return weight + (kernel_->has_linear_part() ? sharpness : 0.0);
}

// Both traces are large sums, and the D of `left_out` moves Tr Phi Phi' by sum_i w_i a_i'D a_i, at
// most |D| Tr (L^-T Phi'Phi L^-1): much only where rows lie far from all landmarks and these are
// nearly dependent. O(r^3)
double Landmarks::trace_error(const Matrix& phi_phi, double rows, double trace) const {
  Matrix inverse = Matrix::Identity(d(), d());
  solve_lower(factor_, inverse);
  const Matrix symmetric = phi_phi.selfadjointView<Eigen::Lower>();
  const double coefficients = inverse.cwiseProduct(product(symmetric, inverse)).sum();
  const double terms = static_cast<double>(kBlock) + rows / static_cast<double>(kBlock);
  return kEpsilon * (terms * trace + kKernelRounding * coefficients);
}

}  // namespace ckce
