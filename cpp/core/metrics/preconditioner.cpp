#include "core/metrics/preconditioner.hpp"

#include <algorithm>
#include <utility>

#include "core/linalg/panel_sums.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// Columns that pay for themselves in products with K saved, within about 40 MB or half of Q.
Index choose_rank(Index n, Index m) {
  const Index affordable = std::clamp<Index>(5000000 / n, 64, 256);
  return std::min({std::max(affordable, m / 2), Index{512}, n / 8});
}

constexpr Index kMostSums = 16;  // (rank, rank) each, which are added one after the other

}  // namespace

Preconditioner::Preconditioner(const Gram& gram, const Samples& samples, double ridge,
                               Parallel& parallel, Index rank)
    : samples_(samples),
      points_(gram.points),
      ridge_(ridge),
      factor_(gram, Pivoting::kRandom, 0, parallel) {
  extend(gram, rank > 0 ? rank : choose_rank(gram.n(), samples.m()), 1e-10, parallel);
}

void Preconditioner::extend(const Gram& gram, Index rank, double tol, Parallel& parallel) {
  factor_.extend(gram, rank, tol, parallel);
  factorise(parallel);
}

bool Preconditioner::extend_until(const Gram& gram, Index most, const std::function<bool()>& enough,
                                  Parallel& parallel) {
  const Index before = factor_.d();
  while (!enough()) {
    if (factor_.d() >= most || factor_.exhausted()) return false;
    factor_.extend(gram, std::min(factor_.d() + kCandidates, most), 0.0, parallel);
  }
  if (factor_.d() > before) factorise(parallel);
  return true;
}

void Preconditioner::factorise(Parallel& parallel) {
  Matrix gg = Matrix::Zero(factor_.d(), factor_.d());
  sum_over_panels(points_.q.count(), gg, parallel,
                  [&](Index i, Matrix& sum) { add_gram(sum, panel(i)); });
  solver_ = std::make_unique<RidgeSolver>(std::move(gg), ridge_, parallel);
}

Matrix Preconditioner::project(const Panels& r, Parallel& parallel) const {
  Matrix x = Matrix::Zero(factor_.d(), r.width());
  sum_over_panels(r.count(), x, parallel, [&](Index i, Matrix& sum) {
    const Matrix g = panel(i);
    add_product_tn(sum, 1.0, g, r.panel(i).topRows(g.rows()));
  });
  return x;
}

void Preconditioner::apply(const Panels& r, Panels& z, Parallel& parallel) const {
  Matrix x = project(r, parallel);
  solver_->solve(x, parallel);
  parallel.each_striped(r.count(), stripe_of(r.count()), [&](Index i) {
    const Matrix g = panel(i);
    z.panel(i) = r.panel(i) / ridge_;
    add_product(z.panel(i).topRows(g.rows()), -1.0 / ridge_, g, x);
  });
}

void Preconditioner::apply_factor(const Panels& r, Panels& z, Parallel& parallel) const {
  const Matrix x = project(r, parallel);
  parallel.each_striped(r.count(), stripe_of(r.count()), [&](Index i) {
    const Matrix g = panel(i);
    z.panel(i).setZero();
    add_product(z.panel(i).topRows(g.rows()), 1.0, g, x);
  });
}

Vector Preconditioner::diagonal(Parallel& parallel) const {
  const Matrix root = solver_->root_of_square(parallel);
  Vector a(points_.n());
  parallel.each_striped(points_.q.count(), stripe_of(points_.q.count()), [&](Index i) {
    a.segment(i * kPanel, points_.q.rows(i)) = solver_->solved_norms(root, panel(i));
  });
  return a;
}

Matrix Preconditioner::panel(Index i) const {
  const Index begin = i * kPanel;
  const Index rows = points_.q.rows(i);
  Matrix g(rows, factor_.d());
  factor_.fill(begin, points_.q.panel(i).topRows(rows), g);
  if (samples_.weights)
    g.array().colwise() *= weights_of(samples_, begin, rows).cwiseSqrt().array();
  return g;
}

}  // namespace ckce
