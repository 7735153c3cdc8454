#include "core/kernels/kernel.hpp"

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
  Vector k = Vector::Constant(points.n(), has_own_part() ? 1.0 : 0.0);
  if (has_linear_part())
    parallel.each_striped(points.q.count(), stripe_of(points.q.count()), [&](Index i) {
      const Index rows = std::min(kPanel, points.n() - i * kPanel);
      k.segment(i * kPanel, rows) += points.q.panel(i).topRows(rows).rowwise().squaredNorm();
    });
  return k;
}

Vector Kernel::diagonal(const In& q) const {
  Vector k = Vector::Constant(q.rows(), has_own_part() ? 1.0 : 0.0);
  if (has_linear_part()) k += q.rowwise().squaredNorm();
  return k;
}

void Kernel::full_tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const {
  tile(a, i, b, j, out);
  if (has_linear_part()) add_product_nt(out, 1.0, a.q.panel(i), b.q.panel(j).topRows(out.cols()));
}

}  // namespace ckce
