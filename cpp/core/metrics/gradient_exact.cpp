// The gradient with K of a kernel. Kbar pulls back through its linear part as 2 Kbar Q, and through
// an own part h with the gradient -s h(p, q) (p - q) as 2 s (P Q - diag(P 1) Q), P = Kbar o H.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/features/linear.hpp"
#include "core/kernels/distances.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/linalg/symmetric_tiles.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/conjugate_gradients.hpp"
#include "core/metrics/diagonal.hpp"
#include "core/metrics/gradient.hpp"
#include "core/metrics/gradient_dual.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {
namespace {

// gradient += 2 s (P Q - diag(P 1) Q). multiply(i, j, tile) turns the tile of H into that of P.
// Differences alone count, so Q is centred: products then round at the scale of its spread. O(n^2
// m)
template <class MakeMultiply>
void pull_back_own_part(const Gram& gram, MakeMultiply make_multiply, Matrix& gradient,
                        Parallel& parallel) {
  const Index m = gradient.cols();
  const Panels& q = gram.points.q;
  Vector mean = Vector::Zero(m);
  for (Index i = 0; i < q.count(); ++i) mean += q.panel(i).colwise().sum().transpose();
  mean /= static_cast<double>(q.n());
  Panels y(q.n(), m + 1);  // [Q - mean | 1]
  for (Index i = 0; i < q.count(); ++i) {
    y.panel(i).leftCols(m) = q.panel(i).rowwise() - mean.transpose();
    y.panel(i).col(m).setOnes();
  }
  y.zero_padding();
  Panels py(q.n(), m + 1, Panels::Unset());
  symmetric_product(
      y, py, parallel,
      [&] {
        return [&, multiply = make_multiply()](Index i, Index j, Matrix& tile) mutable {
          gram.kernel.tile(gram.points, i, gram.points, j, tile);
          multiply(i, j, tile);
        };
      },
      [](Index, Matrix&) {});
  const double scale = 2.0 * gram.kernel.steepness();
  for (Index i = 0; i < q.count(); ++i) {
    const Index rows = q.rows(i);
    const auto sums = py.panel(i).topRows(rows);
    gradient.middleRows(i * kPanel, rows) +=
        scale * (sums.leftCols(m) -
                 Matrix(sums.col(m).asDiagonal() * y.panel(i).topRows(rows).leftCols(m)));
  }
}

Gradient by_factorisation(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          double ridge, Sides sides, Parallel& parallel) {
  const Index n = samples.n();
  const Points points = kernel.points(samples.probs, parallel);
  const Gram gram{kernel, points};
  DualGradient dual =
      gradient_dual(whole_gram(gram, parallel), samples, label, ridge, sides, parallel);
  if (!sides.through_kernel) return {dual.value, std::move(dual.probs)};
  const Matrix& k_bar = dual.gram;
  if (kernel.has_linear_part())
    parallel.each_piece(n, kPanel, [&](Index begin, Index rows) {
      for (Index j = 0; j < points.q.count(); ++j)
        add_product(dual.probs.middleRows(begin, rows), 2.0,
                    k_bar.block(begin, j * kPanel, rows, points.q.rows(j)),
                    points.q.panel(j).topRows(points.q.rows(j)));
    });
  if (kernel.has_own_part())
    pull_back_own_part(
        gram,
        [&] {
          return [&](Index i, Index j, Matrix& tile) {
            const Index rows = points.q.rows(i);
            const Index columns = points.q.rows(j);
            tile.topLeftCorner(rows, columns).array() *=
                k_bar.block(i * kPanel, j * kPanel, rows, columns).array();
            tile.bottomRows(kPanel - rows).setZero();
            tile.rightCols(kPanel - columns).setZero();
          };
        },
        dual.probs, parallel);
  return {dual.value, std::move(dual.probs)};
}

// 2 Kbar Q = 2 ((V - U) V'Q - V U'Q), and P tile by tile out of V and U: no (n, n) matrix. O(n^2 m)
void pull_back_kernel(const Gram& gram, const Panels& v, const Panels& u, Matrix& gradient,
                      Parallel& parallel) {
  const Panels& q = gram.points.q;
  const Index width = v.width();
  // Kbar = A B', A = [V | -U], B = [V - U | V]
  Panels a(v.n(), 2 * width, Panels::Unset());
  Panels b(v.n(), 2 * width, Panels::Unset());
  for (Index i = 0; i < v.count(); ++i) {
    a.panel(i) << v.panel(i), -u.panel(i);
    b.panel(i) << v.panel(i) - u.panel(i), v.panel(i);
  }
  if (gram.kernel.has_linear_part()) {
    Matrix b_q = Matrix::Zero(2 * width, q.width());  // B'Q
    parallel.each_piece(2 * width, kMomentColumns, [&](Index begin, Index columns) {
      for (Index i = 0; i < q.count(); ++i)
        add_product_tn(b_q.middleRows(begin, columns), 1.0, b.panel(i).middleCols(begin, columns),
                       q.panel(i));
    });
    parallel.each_striped(q.count(), stripe_of(q.count()), [&](Index i) {
      add_product(gradient.middleRows(i * kPanel, q.rows(i)), 2.0, a.panel(i).topRows(q.rows(i)),
                  b_q);
    });
  }
  if (!gram.kernel.has_own_part()) return;
  pull_back_own_part(
      gram,
      [&] {
        return [&, k_bar = Matrix(kPanel, kPanel)](Index i, Index j, Matrix& tile) mutable {
          if (2 * width <= kFewClasses) {
            tile_of<Dot>(a.panel(i).data(), b.panel(j).data(), 2 * width, k_bar,
                         [](Index, double*) {});
          } else {
            k_bar.setZero();
            add_product_nt(k_bar, 1.0, a.panel(i), b.panel(j));
          }
          tile.array() *= k_bar.array();
        };
      },
      gradient, parallel);
}

// None if one of the two systems takes more than `most` products.
std::optional<Gradient> by_iteration(const Kernel& kernel, const Samples& samples,
                                     const LabelKernel& label, double ridge, double tol, Index most,
                                     Sides sides, Parallel& parallel) {
  const Index n = samples.n();
  const Points points = kernel.points(samples.probs, parallel);
  const Gram gram{kernel, points};
  const WeightedGram weighted(gram, samples, parallel);
  Preconditioner preconditioner(gram, samples, ridge, parallel);
  Panels u;
  Panels v;
  Gradient gradient;
  {
    const Panels r =
        residual_panels(samples, points.q, label, [](double w) { return std::sqrt(w); });
    const auto solve = [&](const Panels& b) {
      const double enough = std::max(tol, 1e-14) * b.data().norm();
      return ConjugateGradients(
          weighted, preconditioner, b, ridge, parallel,
          [&](const auto& cg) { return cg.rest.data().norm() <= enough; }, most);
    };
    ConjugateGradients first = solve(r);  // V = W R F
    if (!first.done) return std::nullopt;
    ConjugateGradients second = solve(first.x);  // W V, and U = K W V
    if (!second.done) return std::nullopt;
    gradient.value = dot(first.x, first.kx) + 2.0 * dot(first.x, first.rest) -
                     2.0 * ridge * dot(second.x, first.rest);
    v = std::move(first.x);
    u = std::move(second.kx);
  }
  gradient.probs = unset<Matrix>(n, samples.m());
  Vector norms(n);  // |r_i F|^2
  const auto each_panel = [&](auto work) {
    parallel.each_striped(points.q.count(), stripe_of(points.q.count()), [&](Index i) {
      Matrix r = points.q.panel(i).topRows(points.q.rows(i));
      residuals_in_place(samples.labels + i * kPanel, r);
      work(i, i * kPanel, points.q.rows(i), label.apply(r));
    });
  };
  const auto to_probs = [&](const Matrix& r_bar) {
    return label.kronecker() ? Matrix(-r_bar) : Matrix(-product(r_bar, label.factor.transpose()));
  };
  each_panel([&](Index i, Index begin, Index rows, const Matrix& r) {
    norms.segment(begin, rows) = r.rowwise().squaredNorm();
    const Vector root = weights_of(samples, begin, rows).cwiseSqrt();
    v.panel(i).topRows(rows) = root.asDiagonal() * v.panel(i).topRows(rows);
    u.panel(i).topRows(rows) = root.asDiagonal() * u.panel(i).topRows(rows);
    gradient.probs.middleRows(begin, rows) = to_probs(2.0 * u.panel(i).topRows(rows));
  });
  if (sides.debias) {
    const Vector a =
        diagonal_by_factor(gram, weighted, samples, norms, ridge, preconditioner, parallel);
    gradient.value -= a.dot(norms);
    each_panel([&](Index, Index begin, Index rows, const Matrix& r) {
      gradient.probs.middleRows(begin, rows) -=
          to_probs(2.0 * a.segment(begin, rows).asDiagonal() * r);
    });
  }
  if (sides.through_kernel) pull_back_kernel(gram, v, u, gradient.probs, parallel);
  return gradient;
}

}  // namespace

Gradient gradient_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                        double ridge, double tol, Solver solver, Sides sides, Parallel& parallel) {
  if (!kernel.has_own_part() && samples.n() >= samples.m())  // K = Q Q'
    return gradient_features(LinearFeatures(samples.m()), samples, label, ridge, sides, parallel);
  if (solver == Solver::kIterate) {
    const bool alone = samples.n() > kFactorisationLimit;
    auto found = by_iteration(kernel, samples, label, ridge, tol,
                              alone ? kMostProducts : kFewProducts, sides, parallel);
    if (found) return std::move(*found);
    if (alone) throw std::domain_error(kNoConvergence);
  }
  return by_factorisation(kernel, samples, label, ridge, sides, parallel);
}

}  // namespace ckce
