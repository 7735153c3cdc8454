#include "core/metrics/diagonal.hpp"

#include <algorithm>
#include <utility>

#include "core/features/cholesky.hpp"
#include "core/linalg/lower_triangle.hpp"
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

// Everything scaled by sqrt(w).
class LowRank {
 public:
  LowRank(const Cholesky& factor, const Points& points, const Samples& samples, double ridge,
          Parallel& parallel)
      : ridge_(ridge), g_(points.n(), factor.d()), parallel_(parallel) {
    parallel.each_striped(g_.count(), stripe_of(g_.count()), [&](Index i) {
      const Index rows = g_.rows(i);
      Matrix g(rows, factor.d());
      factor.fill(i * kPanel, points.q.panel(i).topRows(rows), g);
      g_.panel(i).topRows(rows) =
          weights_of(samples, i * kPanel, rows).cwiseSqrt().asDiagonal() * g;
    });
    gg_ = panel_products(g_, g_, parallel);
    const RidgeSolver solver(gg_, ridge, parallel);
    n_ = Matrix::Identity(factor.d(), factor.d());
    solver.solve(n_, parallel);
    nn_ = n_;
    solver.solve(nn_, parallel);
    missed_ = factor.residual().cwiseProduct(weights_of(samples, 0, samples.n()));
  }

  // E_ii / ridge^2
  Vector missed() const { return missed_ / (ridge_ * ridge_); }

  // (G N N G')_ii
  Vector plain() const {
    Vector a(g_.n());
    each_panel([&](Index i, const auto& g) {
      a.segment(i * kPanel, g.rows()) = g.cwiseProduct(product(g, nn_)).rowwise().sum();
    });
    return a;
  }

  // What E changes to first order: with F = E G and Z = G'E G,
  //   (W E W)_ii = (E_ii - 2 g_i N f_i' + g_i N Z N g_i') / ridge^2
  //   (A E W)_ii = (g_i N N f_i' - g_i N N Z N g_i') / ridge
  Vector first_order(const WeightedGram& weighted) const {
    Panels f(g_.n(), g_.width(), Panels::Unset());
    weighted.apply(g_, f, parallel_);
    parallel_.each_striped(f.count(), stripe_of(f.count()),
                           [&](Index i) { add_product(f.panel(i), -1.0, g_.panel(i), gg_); });
    const Matrix zn = product(panel_products(g_, f, parallel_), n_);
    Vector change(g_.n());
    each_panel([&](Index i, const auto& g) {
      const Matrix gn = product(g, n_);
      const Matrix gnn = product(g, nn_);
      const Matrix left = f.panel(i).topRows(g.rows()) - product(g, zn.transpose());
      const auto at = [&](const Matrix& a, const auto& b) {
        return Vector(a.cwiseProduct(b).rowwise().sum());
      };
      // g_i N Z N g_i' = <gn_i, g_i (Z N)'>
      const Vector wew = missed_.segment(i * kPanel, g.rows()) -
                         at(gn, f.panel(i).topRows(g.rows())) - at(gn, left);
      change.segment(i * kPanel, g.rows()) =
          wew / (ridge_ * ridge_) - (2.0 / ridge_) * at(gnn, left);
    });
    return change;
  }

 private:
  template <class Work>
  void each_panel(Work work) const {
    parallel_.each_striped(g_.count(), stripe_of(g_.count()),
                           [&](Index i) { work(i, g_.panel(i).topRows(g_.rows(i))); });
  }

  double ridge_;
  Panels g_;
  Parallel& parallel_;
  Matrix gg_;  // G'G
  Matrix n_;
  Matrix nn_;
  Vector missed_;
};

}  // namespace

Vector diagonal_by_factor(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                          const Vector& norms, double ridge, Parallel& parallel) {
  Cholesky factor(gram, Pivoting::kRandom, 0, parallel);
  const Index most = most_debias_rank(gram.n(), samples.m());
  Vector before;
  for (Index rank = 128;; rank *= 2) {
    factor.extend(gram, std::min(rank, most), 0.0, parallel);
    const LowRank low_rank(factor, gram.points, samples, ridge, parallel);
    const Vector plain = low_rank.plain();
    const Vector missed = low_rank.missed();
    const double share = missed.dot(norms) / plain.dot(norms);
    if (share <= kDebiasShare || factor.exhausted()) return plain + missed;
    if (share <= kFewMissed && rank < kFirstProduct && factor.d() < most) continue;
    const Vector a = plain + low_rank.first_order(weighted);
    const bool settled =
        before.size() > 0 && (a - before).cwiseAbs().dot(norms) <= kDiagonalShare * a.dot(norms);
    if (settled || factor.d() >= most) return a;
    before = a;
  }
}

}  // namespace ckce
