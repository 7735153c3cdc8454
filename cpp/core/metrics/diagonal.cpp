#include "core/metrics/diagonal.hpp"

#include <algorithm>
#include <utility>

#include "core/linalg/panel_sums.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce_parts.hpp"

namespace ckce {
namespace {

// If no more than this is missed, a larger factor is cheaper than a product with K, up to a rank.
constexpr double kFewMissed = 0.01;
constexpr Index kFirstProduct = 1024;
constexpr double kDiagonalShare = 1e-3;
constexpr Index kFirstRank = 128;

}  // namespace

// B = G G'G_1 is one step of a power iteration from the first columns of G. Projected on X = G'G_1,
// B = G X, H is B (X'(G'G + ridge I) X)^-1 B'. All of G: X = I.
FirstOrder::FirstOrder(const WeightedGram& weighted, const Preconditioner& preconditioner,
                       Index leading, const Panels& z, double ridge, Parallel& parallel)
    : k_(std::min(leading, preconditioner.factor().d())),
      ridge_(ridge),
      parallel_(parallel),
      b_(z.n(), k_ + z.width(), Panels::Unset()) {
  Matrix xx;
  {
    const Panels first = preconditioner.first_columns(k_, parallel);
    const bool all = k_ == preconditioner.factor().d();
    Panels b = first;
    if (!all) preconditioner.apply_factor(first, b, parallel);
    xx = all ? Matrix::Identity(k_, k_) : panel_products(first, b, parallel);
    const Vector scale = xx.diagonal().cwiseSqrt().cwiseInverse();
    xx = scale.asDiagonal() * xx * scale.asDiagonal();
    for (Index i = 0; i < b_.count(); ++i)
      b_.panel(i) << b.panel(i) * scale.asDiagonal(), z.panel(i);
  }
  {
    Panels low(b_.n(), b_.width(), Panels::Unset());
    preconditioner.apply_factor(b_, low, parallel);
    e_b_ = Panels(b_.n(), b_.width(), Panels::Unset());
    weighted.apply(b_, e_b_, parallel);
    e_b_.data() -= low.data();
  }
  bb_ = panel_products(b_, b_, parallel);
  b_e_b_ = panel_products(b_, e_b_, parallel);
  const Matrix s = bb_.topLeftCorner(k_, k_);
  Matrix inner = s + ridge * xx;
  const double least = 1e-13 * inner.diagonal().maxCoeff();  // rounding may take the last columns
  const RidgeSolver solver(std::move(inner), least, parallel);
  y_ = Matrix::Identity(k_, k_);
  solver.solve(y_, parallel);
  y_2_ = y_ - product(y_, product(s, y_));
}

// ridge^2 C_ii = E_ii - 2 b_i (Y + Y_2) B'E_i + b_i (Y + 2 Y_2) B'E B Y b_i'
Vector FirstOrder::diagonal(const Vector& e_ii) const {
  const Matrix once = 2.0 * (y_ + y_2_);
  const Matrix twice = product(y_ + 2.0 * y_2_, product(b_e_b_.topLeftCorner(k_, k_), y_));
  Vector change(b_.n());
  parallel_.each_striped(b_.count(), stripe_of(b_.count()), [&](Index i) {
    const auto b = b_.panel(i).leftCols(k_);
    Matrix sums = product(b, twice);
    add_product(sums, -1.0, e_b_.panel(i).leftCols(k_), once);
    change.segment(i * kPanel, b_.rows(i)) = b.cwiseProduct(sums).rowwise().sum().head(b_.rows(i));
  });
  return (e_ii + change) / (ridge_ * ridge_);
}

// ridge^2 C Z = E Z - B (Y (B'E Z - B'E B (Y + Y_2) B'Z) + Y_2 (B'E Z - B'E B Y B'Z))
//               - E B (Y + Y_2) B'Z
Panels FirstOrder::apply() const {
  const Index columns = b_.width() - k_;
  const auto e = b_e_b_.topLeftCorner(k_, k_);
  const auto b_z = bb_.topRightCorner(k_, columns);
  const auto e_z = b_e_b_.topRightCorner(k_, columns);
  const Matrix y_z = product(y_, b_z);
  const Matrix of_e = y_z + product(y_2_, b_z);
  const Matrix of_b = product(y_, e_z - product(e, of_e)) + product(y_2_, e_z - product(e, y_z));
  Panels out(b_.n(), columns, Panels::Unset());
  parallel_.each_striped(b_.count(), stripe_of(b_.count()), [&](Index i) {
    Matrix sums = e_b_.panel(i).rightCols(columns);
    add_product(sums, -1.0, b_.panel(i).leftCols(k_), of_b);
    add_product(sums, -1.0, e_b_.panel(i).leftCols(k_), of_e);
    out.panel(i) = sums / (ridge_ * ridge_);
  });
  return out;
}

Vector diagonal_by_factor(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                          const Vector& norms, double ridge, Preconditioner& preconditioner,
                          Parallel& parallel) {
  const Cholesky& factor = preconditioner.factor();
  const Index most = most_debias_rank(gram.n(), samples.m());
  const Vector w = weights_of(samples, 0, gram.n());
  const Panels none(gram.n(), 0);
  if (factor.d() < kFirstRank)
    preconditioner.extend(gram, std::min(kFirstRank, most), 0.0, parallel);
  Vector before;
  for (;;) {
    const Vector plain = preconditioner.diagonal(parallel);
    const Vector e_ii = factor.residual().cwiseProduct(w);
    const Vector missed = e_ii / (ridge * ridge);
    const double share = missed.dot(norms) / plain.dot(norms);
    if (share <= kDebiasShare || factor.exhausted()) return plain + missed;
    const Index next = std::min(2 * factor.d(), most);
    if (share <= kFewMissed && next < kFirstProduct && factor.d() < most) {
      preconditioner.extend(gram, next, 0.0, parallel);
      continue;
    }
    const FirstOrder first(weighted, preconditioner, factor.d(), none, ridge, parallel);
    const Vector a = plain + first.diagonal(e_ii);
    const bool settled =
        before.size() > 0 && (a - before).cwiseAbs().dot(norms) <= kDiagonalShare * a.dot(norms);
    if (settled || factor.d() >= most) return a;
    before = a;
    preconditioner.extend(gram, next, 0.0, parallel);
  }
}

}  // namespace ckce
