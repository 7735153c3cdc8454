#include "landmarks.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "../products.hpp"
#include "cholesky.hpp"

namespace ckce {

std::vector<Index> choose_landmarks(const Kernel& kernel, const Probs& sample, Index count,
                                    std::uint64_t seed, Parallel& parallel) {
  const Points points = kernel.points(sample, parallel);
  Cholesky factor(kernel, points, Pivoting::kRandom, seed, parallel);
  factor.extend(std::min(count, sample.n), 0.0, parallel);
  return factor.pivots();
}

LandmarkFactor factor_landmarks(const Kernel& kernel, const Probs& landmarks, Parallel& parallel) {
  const Points points = kernel.points(landmarks, parallel);
  Cholesky factor(kernel, points, Pivoting::kGreedy, 0, parallel);
  std::vector<Index> all(static_cast<std::size_t>(landmarks.n));
  std::iota(all.begin(), all.end(), Index{0});
  factor.add_in_order(all, parallel);
  LandmarkFactor result{factor.rows(factor.pivots()).triangularView<Eigen::Lower>(), {}};
  std::set_difference(all.begin(), all.end(), factor.pivots().begin(), factor.pivots().end(),
                      std::back_inserter(result.repeated));
  return result;
}

Landmarks::Landmarks(std::unique_ptr<const Kernel> kernel, const Probs& landmarks, Matrix factor)
    : kernel_(std::move(kernel)), factor_(std::move(factor)) {
  Parallel alone;
  Matrix q(landmarks.n, landmarks.m);
  landmarks.load(0, landmarks.n, q);
  mean_ = q.colwise().mean().transpose();
  landmarks_ = kernel_->points(q, mean_, alone);
}

void Landmarks::fill(Index, const In& q, MatrixRef phi) const {
  Parallel alone;
  Matrix tile(kPanel, kPanel);
  for (Index i = 0; i < q.rows(); i += kPanel) {
    const Index rows = std::min(kPanel, q.rows() - i);
    const Points points = kernel_->points(q.middleRows(i, rows), mean_, alone);
    for (Index j = 0; j < landmarks_.q.count(); ++j) {
      const Index columns = std::min(kPanel, d() - j * kPanel);
      kernel_->full_tile(points, 0, landmarks_, j, tile.leftCols(columns));
      phi.block(i, j * kPanel, rows, columns) = tile.topLeftCorner(rows, columns);
    }
  }
  solve_lower_transposed_from_right(factor_, phi);
}

double Landmarks::trace(double weight, double sharpness) const {
  return weight + (kernel_->has_linear_part() ? sharpness : 0.0);
}

// Both traces are large sums, and L L' = K(S, S) + D with D of the size of round-off. With a_i =
// K(S, S)^-1 K(S, q_i) the latter moves Tr Phi Phi' by sum_i w_i a_i'D a_i, at most |D| Tr (L^-T
// Phi'Phi L^-1): much only where rows lie far from all landmarks and these are nearly dependent.
// O(r^3)
double Landmarks::trace_error(const Matrix& phi_phi, double rows, double trace) const {
  Matrix inverse = Matrix::Identity(d(), d());
  solve_lower(factor_, inverse);
  const Matrix symmetric = phi_phi.selfadjointView<Eigen::Lower>();
  const double coefficients = inverse.cwiseProduct(product(symmetric, inverse)).sum();
  const double terms = static_cast<double>(kBlock) + rows / static_cast<double>(kBlock);
  return std::numeric_limits<double>::epsilon() * (terms * trace + 64.0 * coefficients);
}

}  // namespace ckce
