#include "core/features/landmarks.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/features/cholesky.hpp"
#include "core/features/line_sections.hpp"
#include "core/features/slack.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

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

bool Landmarks::add_sections(LineSections& to) const {
  if (kernel_->line() != Kernel::Line::kGaussian) return false;
  Matrix points(d(), m());
  for (Index i = 0; i < d(); ++i) points.row(i) = points_.q.row(i);
  return to.add_landmarks(points, kernel_->bandwidth(), factor_, kernel_->has_linear_part());
}

// With B = phi_bar L^-1, the gradient in K(q, S), and P = B o own part of K(q, S): the linear part
// adds B S, the own part -steepness (diag(P 1) q - P S).
void Landmarks::pull_back(const In& q, const In& /*phi*/, const In& phi_bar,
                          MatrixRef q_bar) const {
  Parallel alone;
  Matrix tile(kPanel, kPanel);
  Matrix bar = phi_bar.transpose();
  solve_lower_transposed(factor_, bar);
  const double steepness = kernel_->steepness();
  for (Index i = 0; i < q.rows(); i += kPanel) {
    const Index rows = std::min(kPanel, q.rows() - i);
    const Points points = kernel_->points(q.middleRows(i, rows), mean_, alone);
    for (Index j = 0; j < points_.q.count(); ++j) {
      const Index columns = std::min(kPanel, d() - j * kPanel);
      const Matrix b = bar.block(j * kPanel, i, columns, rows).transpose();
      const auto s = points_.q.panel(j).topRows(columns);
      if (kernel_->has_linear_part()) add_product(q_bar.middleRows(i, rows), 1.0, b, s);
      if (!kernel_->has_own_part()) continue;
      kernel_->tile(points, 0, points_, j, tile.leftCols(columns));
      const Matrix p = steepness * b.cwiseProduct(tile.topLeftCorner(rows, columns));
      add_product(q_bar.middleRows(i, rows), 1.0, p, s);
      q_bar.middleRows(i, rows) -= p.rowwise().sum().asDiagonal() * q.middleRows(i, rows);
    }
  }
}

Vector Landmarks::left_out(Index, const In& q, const In& phi) const {
  const Vector k = kernel_->diagonal(q);
  const double terms = static_cast<double>(2 * d() + m() + 8);
  return (k - phi.rowwise().squaredNorm()).cwiseMax(0.0) + terms * kUnit * k;
}

double Landmarks::trace(double weight, double sharpness) const {
  return weight + (kernel_->has_linear_part() ? sharpness : 0.0);
}

double Landmarks::slack(const Matrix& phi_phi, double weight, Parallel& parallel) const {
  return slack_of(factor_, phi_phi, weight, kernel_->entry_error(m()), parallel);
}

}  // namespace ckce
