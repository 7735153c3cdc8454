#include "core/metrics/block_solve.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include "core/base/rounding.hpp"
#include "core/linalg/panel_sums.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {
namespace {

constexpr Index kMostBlockProducts = 4;  // then conjugate gradients take over

// B -> the C that leaves least of B - A C. Columns of A are scaled to 1; the ridge keeps C small
// where they are dependent.
class LeastSquares {
 public:
  LeastSquares(const Panels& a, Parallel& parallel)
      : a_(a), scale_(Vector::Zero(a.width())), parallel_(parallel) {
    Matrix aa = Matrix::Zero(a.width(), a.width());
    sum_over_panels(a.count(), aa, parallel,
                    [&](Index i, Matrix& sum) { add_gram(sum, a.panel(i)); });
    for (Index k = 0; k < a.width(); ++k)
      if (aa(k, k) > 1e-280) scale_[k] = 1.0 / std::sqrt(aa(k, k));
    aa = scale_.asDiagonal() * aa * scale_.asDiagonal();
    solver_ = std::make_unique<RidgeSolver>(std::move(aa), 1e-8, parallel);
  }

  Matrix operator()(const Panels& b) const {
    Matrix c = scale_.asDiagonal() * panel_products(a_, b, parallel_);
    solver_->solve(c, parallel_);
    return scale_.asDiagonal() * c;
  }

 private:
  const Panels& a_;
  Vector scale_;
  std::unique_ptr<RidgeSolver> solver_;
  Parallel& parallel_;
};

void add(Panels& out, double scale, const Panels& a, const Matrix& c, Parallel& parallel) {
  parallel.each_striped(out.count(), stripe_of(out.count()),
                        [&](Index i) { add_product(out.panel(i), scale, a.panel(i), c); });
}

// At least | |D| |C| |_F: D C and its rounding, whatever the signs.
double most_of_product(const Panels& d, const Matrix& c) {
  Vector squares = Vector::Zero(d.width());
  for (Index i = 0; i < d.count(); ++i) squares += d.panel(i).colwise().squaredNorm().transpose();
  return (c.cwiseAbs().transpose() * squares.cwiseSqrt()).norm();
}

}  // namespace

BlockSolve::BlockSolve(const WeightedGram& gram, const Preconditioner& preconditioner, Panels r,
                       double ridge, double tol, Parallel& parallel)
    : v(r.n(), r.width(), Panels::Unset()),
      kv(r.n(), r.width(), Panels::Unset()),
      rho(std::move(r)),
      u(rho.n(), rho.width()) {
  preconditioner.apply(rho, v, parallel);
  gram.apply(v, kv, parallel);
  rho.data() -= kv.data() + ridge * v.data();
  const double v_norm = v.data().norm();
  kv_error = gram.error() * v_norm;
  rho_error = kv_error + kUnit * (rho.data().norm() + 3.0 * (gram.norm() + ridge) * v_norm);
  Panels tau_rows = kv;
  bool of_u = false;
  for (iterations = 1; iterations < kMostBlockProducts && !done; ++iterations) {
    step(gram, preconditioner, ridge, of_u, tau_rows, parallel);
    const double enough = tol * dot(v, kv);
    const double left = rho.data().norm();
    done = bound(ridge) <= 0.75 * enough;
    of_u = left * left / (4.0 * ridge) <= 0.25 * enough &&
           2.0 * tau_error_ / ridge * left <= 0.25 * enough;
  }
}

void BlockSolve::step(const WeightedGram& gram, const Preconditioner& preconditioner, double ridge,
                      bool of_u, Panels& tau_rows, Parallel& parallel) {
  const Index width = of_u ? 0 : rho.width();
  const double norm = gram.norm() + ridge;
  Panels a(rho.n(), rho.width(), Panels::Unset());
  preconditioner.apply(tau_rows, a, parallel);
  double scale;
  const FloatPanels s = gram.to_float(a, scale);
  Panels d(rho.n(), width, Panels::Unset());
  if (!of_u) preconditioner.apply(rho, d, parallel);
  Panels kd(rho.n(), width, Panels::Unset());
  gram.apply(d, kd, s, a, parallel);

  double s_square = 0.0;
  for (Index i = 0; i < s.count(); ++i) {
    const Matrix rows = gram.from_float(s, i, scale);
    s_square += rows.squaredNorm();
    u.panel(i) += rows;
    tau_rows.panel(i) -= a.panel(i) / scale + ridge * rows;
  }
  const double s_norm = std::sqrt(s_square);
  tau_error_ += (gram.float_error() + 4.0 * kUnit * norm) * s_norm +
                kUnit * (tau_rows.data().norm() + norm * u.data().norm());

  if (!of_u) step_by_block(gram, ridge, d, kd, a, tau_rows, parallel);
  const double left = tau_rows.data().norm();
  tau_error_ += 2.0 * kUnit * left;
  tau = left + tau_error_;
}

void BlockSolve::step_by_block(const WeightedGram& gram, double ridge, const Panels& d,
                               const Panels& kd, Panels& a, Panels& tau_rows, Parallel& parallel) {
  const double norm = gram.norm() + ridge;
  a.data() = kd.data() + ridge * d.data();
  const LeastSquares least(a, parallel);
  const double depth = static_cast<double>(d.width()) + 8.0;
  {  // V += D C
    const Matrix c = least(rho);
    const double moved = most_of_product(d, c);
    add(v, 1.0, d, c, parallel);
    add(kv, 1.0, kd, c, parallel);
    add(tau_rows, 1.0, kd, c, parallel);
    add(rho, -1.0, a, c, parallel);
    const double of_v = kUnit * (depth * moved + v.data().norm());
    const double rounded = (gram.error() + depth * kUnit * norm) * moved + norm * of_v;
    kv_error += rounded + kUnit * kv.data().norm();
    rho_error += rounded + kUnit * rho.data().norm();
    tau_error_ += depth * kUnit * norm * moved;
  }
  {  // U += D C
    const Matrix c = least(tau_rows);
    const double moved = most_of_product(d, c);
    add(u, 1.0, d, c, parallel);
    add(tau_rows, -1.0, a, c, parallel);
    const double of_u = kUnit * (depth * moved + u.data().norm());
    tau_error_ += (gram.error() + depth * kUnit * norm) * moved + norm * of_u;
  }
}

Vector BlockSolve::per_class() const {
  Vector sums = Vector::Zero(v.width());
  for (Index i = 0; i < v.count(); ++i)
    sums += (v.panel(i).cwiseProduct(kv.panel(i)) + 2.0 * u.panel(i).cwiseProduct(rho.panel(i)))
                .colwise()
                .sum()
                .transpose();
  return sums;
}

double BlockSolve::bound(double ridge) const {
  const double left = rho.data().norm();
  return 2.0 * tau / ridge * left + left * left / (4.0 * ridge);
}

double BlockSolve::full_bound(double ridge, double r_error) const {
  const double moved = rho_error + r_error;
  const double left = rho.data().norm() + moved;
  const double v_norm = v.data().norm();
  const double u_norm = u.data().norm();
  return 2.0 * (tau + kv_error) / ridge * left + left * left / (4.0 * ridge) + v_norm * kv_error +
         2.0 * u_norm * moved +
         depth_in_panels(v.n()) * kUnit * (v_norm * kv.data().norm() + 2.0 * u_norm * left);
}

}  // namespace ckce
