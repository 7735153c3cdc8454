#include "core/metrics/preconditioner.hpp"

#include <algorithm>
#include <utility>

#include "core/linalg/panel_sums.hpp"
#include "core/linalg/products.hpp"
#include "core/metrics/ckce.hpp"

namespace ckce {
namespace {

// Columns that pay for themselves in products with K saved, within about 40 MB or half of Q.
Index choose_rank(Index n, Index m) {
  const Index affordable = std::clamp<Index>(5000000 / n, 64, 256);
  return std::min({std::max(affordable, m / 2), Index{512}, n / 8});
}

constexpr Index kMostSums = 16;  // (rank, rank) each: one thread at a time adds them up

}  // namespace

Preconditioner::Preconditioner(const Gram& gram, const Samples& samples, double ridge,
                               Parallel& parallel, Index rank)
    : samples_(samples),
      points_(gram.points),
      ridge_(ridge),
      factor_(gram, Pivoting::kRandom, 0, parallel) {
  if (rank == 0) rank = choose_rank(gram.n(), samples.m());
  // With the columns that the debias term may ask for, while n^2 is not much.
  factor_.reserve(gram.n() <= kFactorisationLimit ? std::max(rank, 3 * gram.n() / 10) : rank);
  extend(gram, rank, 1e-10, parallel);
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
    factor_.extend(gram, std::min(factor_.d() + kCandidates / 2, most), 0.0, parallel);
  }
  if (factor_.d() > before) factorise(parallel);
  return true;
}

void Preconditioner::factorise(Parallel& parallel) {
  Matrix gg = Matrix::Zero(factor_.d(), factor_.d());
  const Index count = points_.q.count();
  sum_over_panels(
      count, gg, parallel,
      [&](Index i, Matrix& sum) {
        Matrix copy;
        add_gram(sum, panel(i, copy));
      },
      std::max(stripe_of(count), count_pieces(count, kMostSums)));
  solver_ = std::make_unique<RidgeSolver>(std::move(gg), ridge_, parallel);
}

Matrix Preconditioner::project(const Panels& r, Parallel& parallel) const {
  Matrix x = Matrix::Zero(factor_.d(), r.width());
  sum_over_panels(r.count(), x, parallel, [&](Index i, Matrix& sum) {
    Matrix copy;
    const In g = panel(i, copy);
    add_product_tn(sum, 1.0, g, r.panel(i).topRows(g.rows()));
  });
  return x;
}

void Preconditioner::apply(const Panels& r, Panels& z, Parallel& parallel) const {
  Matrix x = project(r, parallel);
  solver_->solve(x, parallel);
  parallel.each_striped(r.count(), stripe_of(r.count()), [&](Index i) {
    Matrix copy;
    const In g = panel(i, copy);
    z.panel(i) = r.panel(i) / ridge_;
    add_product(z.panel(i).topRows(g.rows()), -1.0 / ridge_, g, x);
  });
}

void Preconditioner::apply_factor(const Panels& r, Panels& z, Parallel& parallel) const {
  const Matrix x = project(r, parallel);
  parallel.each_striped(r.count(), stripe_of(r.count()), [&](Index i) {
    Matrix copy;
    const In g = panel(i, copy);
    z.panel(i).setZero();
    add_product(z.panel(i).topRows(g.rows()), 1.0, g, x);
  });
}

Panels Preconditioner::first_columns(Index k, Parallel& parallel) const {
  Panels first(points_.n(), k);
  parallel.each_striped(first.count(), stripe_of(first.count()), [&](Index i) {
    Matrix copy;
    first.panel(i).topRows(first.rows(i)) = panel(i, copy).leftCols(k);
  });
  return first;
}

Vector Preconditioner::diagonal(Parallel& parallel) const {
  const Matrix root = solver_->root_of_square(parallel);
  Vector a(points_.n());
  parallel.each_striped(points_.q.count(), stripe_of(points_.q.count()), [&](Index i) {
    Matrix copy;
    a.segment(i * kPanel, points_.q.rows(i)) = solver_->solved_norms(root, panel(i, copy));
  });
  return a;
}

In Preconditioner::panel(Index i, Matrix& copy) const {
  const Index rows = points_.q.rows(i);
  const In g = factor_.panel(i, rows, copy);
  if (!samples_.weights) return g;
  copy = weights_of(samples_, i * kPanel, rows).cwiseSqrt().asDiagonal() * g;
  return copy;
}

}  // namespace ckce
