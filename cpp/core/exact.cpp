#include "exact.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "dense.hpp"
#include "features/cholesky.hpp"
#include "features/linear.hpp"
#include "gram_product.hpp"
#include "moments.hpp"
#include "products.hpp"
#include "ridge_solve.hpp"

namespace ckce {
namespace {

constexpr const char* kNoConvergence =
    "the iteration for method='exact' did not reach tol: regularization is too small for it; pass "
    "a "
    "larger one, a larger tol, or method='cholesky'";

double dot(const Panels& a, const Panels& b) { return a.data().cwiseProduct(b.data()).sum(); }

void scale_rows(Panels& a, const Vector& root) {
  for (Index i = 0; i < a.count(); ++i) {
    const Index rows = std::min(kPanel, a.n() - i * kPanel);
    a.panel(i).topRows(rows).array().colwise() *= root.segment(i * kPanel, rows).array();
  }
}

// v -> sqrt(w) K sqrt(w) v
class Gram {
 public:
  Gram(const Kernel& kernel, const Points& points, const Samples& samples)
      : kernel_(kernel), points_(points) {
    if (samples.weights) root_ = weights_of(samples, 0, samples.n()).cwiseSqrt();
  }

  void apply(const Panels& v, Panels& kv, Parallel& parallel) const {
    if (root_.size() == 0) return gram_product(kernel_, points_, v, kv, parallel);
    Panels scaled = v;
    scale_rows(scaled, root_);
    gram_product(kernel_, points_, scaled, kv, parallel);
    scale_rows(kv, root_);
  }

 private:
  const Kernel& kernel_;
  const Points& points_;
  Vector root_;
};

// Columns that pay for themselves in products with K saved, within about 40 MB or half of Q.
Index preconditioner_rank(Index n, Index m) {
  const Index affordable = std::clamp<Index>(5000000 / n, 64, 256);
  return std::min({std::max(affordable, m / 2), Index{512}, n / 8});
}

// r -> (G G' + ridge I)^-1 r = (r - G (G'G + ridge I)^-1 G'r) / ridge
class Preconditioner {
 public:
  Preconditioner(const Kernel& kernel, const Points& points, const Samples& samples, double ridge,
                 Parallel& parallel)
      : samples_(samples),
        points_(points),
        ridge_(ridge),
        factor_(kernel, points, Pivoting::kRandom, 0, parallel) {
    factor_.extend(preconditioner_rank(points.n(), samples.m()), 1e-10, parallel);
    Matrix gg = Matrix::Zero(factor_.d(), factor_.d());
    sum_over_panels(gg, parallel, [&](Index i, Matrix& sum) { add_gram(sum, panel(i)); });
    solver_ = std::make_unique<RidgeSolver>(std::move(gg), ridge, parallel);
  }

  Index rank() const { return factor_.d(); }

  void apply(const Panels& r, Panels& z, Parallel& parallel) const {
    Matrix x = Matrix::Zero(factor_.d(), r.width());
    sum_over_panels(x, parallel, [&](Index i, Matrix& sum) {
      const Matrix g = panel(i);
      add_product_tn(sum, 1.0, g, r.panel(i).topRows(g.rows()));
    });
    solver_->solve(x, parallel);
    parallel.each_striped(r.count(), stripe_of(r.count()), [&](Index i) {
      const Matrix g = panel(i);
      z.panel(i) = r.panel(i) / ridge_;
      add_product(z.panel(i).topRows(g.rows()), -1.0 / ridge_, g, x);
    });
  }

 private:
  // total += the sum over panels of what add(panel, sum) adds, stripe by stripe in order.
  template <class Add>
  void sum_over_panels(Matrix& total, Parallel& parallel, Add add) const {
    const Index count = points_.q.count();
    const Index stripe = stripe_of(count);
    parallel.each((count + stripe - 1) / stripe, [&] {
      return [&](Index task) {
        Matrix sum = Matrix::Zero(total.rows(), total.cols());
        for (Index i = task * stripe; i < std::min((task + 1) * stripe, count); ++i) add(i, sum);
        parallel.in_turn(task, [&] { total += sum; });
      };
    });
  }

  Matrix panel(Index i) const {  // rows of sqrt(w) G
    const Index begin = i * kPanel;
    const Index rows = std::min(kPanel, points_.n() - begin);
    Matrix g(rows, factor_.d());
    factor_.fill(begin, points_.q.panel(i).topRows(rows), g);
    if (samples_.weights)
      g.array().colwise() *= weights_of(samples_, begin, rows).cwiseSqrt().array();
    return g;
  }

  const Samples& samples_;
  const Points& points_;
  double ridge_;
  Cholesky factor_;
  std::unique_ptr<RidgeSolver> solver_;
};

// Conjugate gradients for (K + ridge I) X = B, all columns at once; stops when is_done(state).
struct ConjugateGradients {
  Panels x;
  Panels kx;    // K X, summed along the way: B - rest - ridge X would cancel
  Panels rest;  // B - (K + ridge I) X
  Index iterations = 0;
  bool done = false;

  template <class IsDone>
  ConjugateGradients(const Gram& gram, const Preconditioner& preconditioner, const Panels& b,
                     double ridge, Parallel& parallel, IsDone is_done)
      : x(b.n(), b.width()), kx(b.n(), b.width()), rest(b) {
    constexpr Index kMostIterations = 1000;
    Panels z(b.n(), b.width(), Panels::Unset());
    preconditioner.apply(rest, z, parallel);
    Panels p = z;
    Panels kp(b.n(), b.width(), Panels::Unset());
    double rest_z = dot(rest, z);
    done = is_done(*this);
    while (!done && iterations < kMostIterations) {
      gram.apply(p, kp, parallel);
      const double step = rest_z / (dot(p, kp) + ridge * p.data().squaredNorm());
      x.data() += step * p.data();
      kx.data() += step * kp.data();
      rest.data() -= step * (kp.data() + ridge * p.data());
      ++iterations;
      done = is_done(*this);
      if (done) break;
      preconditioner.apply(rest, z, parallel);
      const double next = dot(rest, z);
      p.data() = z.data() + (next / rest_z) * p.data();
      rest_z = next;
    }
  }
};

// sum_i A_ii |r_i|^2 and the floor from a pivoted-Cholesky factor. What A = W K W misses is E /
// ridge^2 to first order in E; that is added, and the rank doubles until it is 1e-3 of the term
// (which leaves an error near 1e-4 of it).
void diagonal_terms(const Kernel& kernel, const Points& points, const Samples& samples,
                    const LabelKernel& label, double ridge, Solution& solution,
                    Parallel& parallel) {
  Cholesky factor(kernel, points, Pivoting::kRandom, 0, parallel);
  Vector norms(samples.n());    // w_i |r_i|^2
  Vector spreads(samples.n());  // w_i E|r_i|^2
  for (Index i = 0; i < points.q.count(); ++i) {
    const Index begin = i * kPanel;
    const Index rows = std::min(kPanel, samples.n() - begin);
    const Vector w = weights_of(samples, begin, rows);
    Matrix block = points.q.panel(i).topRows(rows);
    spreads.segment(begin, rows) = label.spreads(block).cwiseProduct(w);
    residuals_in_place(samples.labels + begin, block);
    norms.segment(begin, rows) = label.norms(block).cwiseProduct(w);
  }
  // At most 256 MB, or twice the size of Q.
  const Index affordable = std::max<Index>({512, 32000000 / samples.n(), 2 * samples.m()});
  const Index most = std::min({affordable, Index{4096}, samples.n()});
  for (Index rank = 128;; rank *= 2) {
    factor.extend(std::min(rank, most), 0.0, parallel);
    const Vector residual = factor.residual();
    const Solution low_rank = solve_features(factor, samples, label, ridge, &residual, true,
                                             Precision::kFloat64, parallel);
    const double missed = residual.dot(norms) / (ridge * ridge);
    solution.debias = low_rank.debias + missed;
    solution.floor = low_rank.floor + residual.dot(spreads) / (ridge * ridge);
    solution.debias_rank = factor.d();
    solution.debias_error = missed;
    if (missed <= 1e-3 * solution.debias || factor.exhausted() || factor.d() >= most) return;
  }
}

Solution solve_by_iteration(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                            double ridge, double tol, bool full, Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  const Panels r = residual_panels(samples, points.q, label, [](double w) { return std::sqrt(w); });
  Solution solution;
  const Gram gram(kernel, points, samples);
  const Preconditioner preconditioner(kernel, points, samples, ridge, parallel);
  const double r_norm = r.data().norm();
  const double round_off = 1e-15;

  // f = Tr V'KV + 2 <V - ridge Y, rho> up to 2 |sigma| |rho| + |rho|^2 / (4 ridge), where rho and
  // sigma are what is left of the systems for V = W R and Y = W V.
  const ConjugateGradients v(gram, preconditioner, r, ridge, parallel, [&](const auto& cg) {
    const double rho = cg.rest.data().norm();
    const bool small = rho * rho / (4.0 * ridge) <= 0.25 * tol * dot(cg.x, cg.kx);
    return rho <= round_off * r_norm || (rho <= 1e-5 * r_norm && small);
  });
  const double value = dot(v.x, v.kx);
  if (!v.done) throw std::domain_error(kNoConvergence);
  const double rho = v.rest.data().norm();
  const double x_norm = v.x.data().norm();
  bool settled = false;
  const ConjugateGradients y(gram, preconditioner, v.x, ridge, parallel, [&](const auto& cg) {
    const double sigma = cg.rest.data().norm();
    if (!settled && (sigma <= round_off * x_norm || 2.0 * sigma * rho <= 0.5 * tol * value)) {
      settled = true;  // the value is the same whether or not the influence needs more steps
      solution.bound = 2.0 * sigma * rho + rho * rho / (4.0 * ridge);
      solution.per_class = Vector::Zero(r.width());
      for (Index i = 0; i < r.count(); ++i)
        solution.per_class += (v.x.panel(i).cwiseProduct(v.kx.panel(i) + 2.0 * v.rest.panel(i)) -
                               2.0 * ridge * cg.x.panel(i).cwiseProduct(v.rest.panel(i)))
                                  .colwise()
                                  .sum()
                                  .transpose();
      solution.value = solution.per_class.sum();
    }
    return settled && (!full || sigma <= 1e-9 * x_norm);
  });
  if (!y.done) throw std::domain_error(kNoConvergence);
  solution.iterations = v.iterations + y.iterations;
  solution.rank = preconditioner.rank();
  if (!full) return solution;

  solution.influence.resize(samples.n());
  for (Index i = 0; i < samples.n(); ++i) solution.influence[i] = v.x.row(i).dot(y.kx.row(i));
  finish_influence(solution.influence, samples, 2.0 * total_weight(samples) * ridge);
  diagonal_terms(kernel, points, samples, label, ridge, solution, parallel);
  const double lambda = ridge / total_weight(samples);
  solution.bound += 32.0 * std::numeric_limits<double>::epsilon() * (1.0 + 2.0 / lambda) *
                    (solution.value + solution.debias);
  return solution;
}

}  // namespace

Solution solve_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                     double ridge, double tol, bool full, bool iterate, Parallel& parallel) {
  if (!kernel.has_own_part())  // K = Q Q': its features are known and few
    return solve_features(LinearFeatures(samples.m()), samples, label, ridge, nullptr, full,
                          Precision::kFloat64, parallel);
  if (iterate) return solve_by_iteration(kernel, samples, label, ridge, tol, full, parallel);
  const Points points = kernel.points(samples.probs, parallel);
  return solve_gram(whole_gram(kernel, points, parallel), samples, label, ridge, full, parallel);
}

}  // namespace ckce
