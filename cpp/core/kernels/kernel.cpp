#include "core/kernels/kernel.hpp"

#include <algorithm>

#include "core/base/rounding.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

Points Points::subset(const std::vector<Index>& rows) const {
  const auto count = static_cast<Index>(rows.size());
  Points chosen;
  chosen.expanded = expanded;
  chosen.q = Panels(count, q.width());
  chosen.x = Panels(count, x.width());
  chosen.half_norms = Matrix::Zero(kPanel, Panels::count(count));
  for (Index i = 0; i < count; ++i) {
    const Index row = rows[as_size(i)];
    chosen.q.row(i) = q.row(row);
    if (x.width() == 0) continue;
    chosen.x.row(i) = x.row(row);
    chosen.half_norms(i % kPanel, i / kPanel) = half_norms(row % kPanel, row / kPanel);
  }
  return chosen;
}

Points Kernel::points(const Probs& probs, Parallel& parallel) const {
  Points points;
  points.q = Panels(probs.n, probs.m, Panels::Unset());
  Matrix sums(probs.m, points.q.count());
  parallel.each_striped(points.q.count(), stripe_of(points.q.count()), [&](Index i) {
    const Index rows = std::min(kPanel, probs.n - i * kPanel);
    points.q.panel(i).bottomRows(kPanel - rows).setZero();
    probs.load(i * kPanel, rows, points.q.panel(i));
    sums.col(i) = points.q.panel(i).colwise().sum().transpose();
  });
  prepare(points, sums.rowwise().sum() / static_cast<double>(probs.n), parallel);
  return points;
}

Points Kernel::points(const In& rows, const Vector& mean, Parallel& parallel) const {
  Points points;
  points.q = Panels(rows.rows(), rows.cols());
  for (Index i = 0; i < points.q.count(); ++i) {
    const Index count = std::min(kPanel, rows.rows() - i * kPanel);
    points.q.panel(i).topRows(count) = rows.middleRows(i * kPanel, count);
  }
  prepare(points, mean, parallel);
  return points;
}

Vector Kernel::diagonal(const Points& points, Parallel& parallel) const {
  Vector k = unset<Vector>(points.n(), 1);
  parallel.each_striped(points.q.count(), stripe_of(points.q.count()), [&](Index i) {
    auto some = k.segment(i * kPanel, points.q.rows(i));
    some.setConstant(has_own_part() ? 1.0 : 0.0);
    if (has_linear_part()) some += points.q.panel(i).topRows(some.size()).rowwise().squaredNorm();
  });
  return k;
}

Vector Kernel::diagonal(const In& q) const {
  Vector k = Vector::Constant(q.rows(), has_own_part() ? 1.0 : 0.0);
  if (has_linear_part()) k += q.rowwise().squaredNorm();
  return k;
}

// exp is right to 2 ulp, and <p, q> <= 1 is a sum of m terms.
double Kernel::entry_error(Index m, double exponent) const {
  const double own = has_own_part() ? 8.0 + exponent : 0.0;
  return kUnit * (own + (has_linear_part() ? static_cast<double>(m) + 4.0 : 0.0));
}

double Kernel::entry_error(const Points& points) const {
  const Index m = points.q.width();
  const bool expanded = points.expanded && points.x.width() > 0;
  return entry_error(m, exponent_error(m, expanded ? points.half_norms.maxCoeff() : kFar));
}

// On the simplex |q - mean|^2 / 2 <= 1.
double Kernel::entry_error(Index m) const {
  const double half_norm = 1.0 / (bandwidth() * bandwidth());
  return entry_error(
      m, std::max(exponent_error(m, std::min(half_norm, kMostExpanded)), exponent_error(m, kFar)));
}

void Kernel::full_tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const {
  tile(a, i, b, j, out);
  if (has_linear_part()) add_product_nt(out, 1.0, a.q.panel(i), b.q.panel(j).topRows(out.cols()));
}

}  // namespace ckce
