#include "core/metrics/gradient_dual.hpp"

#include <utility>

#include "core/base/memory.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {
namespace {

// out = a b, columns shared out among the threads.
Matrix product_by_columns(const Matrix& a, const Matrix& b, Parallel& parallel) {
  Matrix out = unset<Matrix>(a.rows(), b.cols());
  parallel.each_piece(b.cols(), kFactorTile, [&](Index begin, Index columns) {
    auto some = out.middleCols(begin, columns);
    some.setZero();
    add_product(some, 1.0, a, b.middleCols(begin, columns));
  });
  return out;
}

// The upper triangle from the lower one.
void mirror_lower(Matrix& a, Parallel& parallel) {
  parallel.each_piece(a.cols(), kSolveColumns, [&](Index begin, Index columns) {
    for (Index j = begin; j < begin + columns; ++j)
      for (Index i = j + 1; i < begin + columns; ++i) a(j, i) = a(i, j);
    const Index below = a.rows() - begin - columns;
    a.block(begin, begin + columns, columns, below) =
        a.block(begin + columns, begin, below, columns).transpose();
  });
}

// W K = I - W diag(ridge / w) cancels ridge / k(q, q) digits; up to here there are enough.
constexpr double kMostCancelled = 1e4;

// W and what comes of it, (n, n). O(n^3)
struct Inverse {
  Matrix w;   // its lower triangle, if that is enough
  Matrix kw;  // K W, where W diag(ridge / w) would cancel too much
  Vector ridges;

  Inverse(const Matrix& gram, RidgeSolver solver, const Vector& ridges_, bool all,
          Parallel& parallel)
      : w(std::move(solver).into_inverse(parallel)), ridges(ridges_) {
    const bool cancels = ridges.maxCoeff() > kMostCancelled * gram.diagonal().minCoeff();
    if (all || cancels) mirror_lower(w, parallel);
    if (cancels) kw = product_by_columns(gram, w, parallel);
  }

  Vector diagonal() const {  // of W K W
    if (kw.size() > 0) return w.cwiseProduct(kw).colwise().sum().transpose();
    Vector a = w.diagonal() - ridges.cwiseProduct(w.diagonal().cwiseAbs2());
    for (Index j = 0; j < a.size(); ++j) {
      const Index below = a.size() - j - 1;
      const auto column = w.col(j).tail(below);
      a[j] -= column.cwiseAbs2().dot(ridges.tail(below));
      a.tail(below) -= ridges[j] * column.cwiseAbs2();
    }
    return a;
  }

  // (K W D + D W K - D) W, D = diag(d)
  Matrix times_inner(const Vector& d, Parallel& parallel) const {
    Matrix inner = unset<Matrix>(w.rows(), w.cols());
    for (Index j = 0; j < inner.cols(); ++j) {
      if (kw.size() > 0) {
        inner.col(j) = d[j] * kw.col(j) + d.cwiseProduct(kw.row(j).transpose());
        inner(j, j) -= d[j];
      } else {
        inner.col(j) = (-d[j] * ridges - ridges[j] * d).cwiseProduct(w.col(j));
        inner(j, j) += d[j];
      }
    }
    return product_by_columns(inner, w, parallel);
  }
};

}  // namespace

// As in ckce_gram, sqrt(w) is taken out on both sides: W = (K + ridge diag(w)^-1)^-1, and V = W R
// F, U = W K V carry the weights already. A of eq. (7) is diag(w)^-1/2 W K W diag(w)^-1/2, so that
// the diagonal of W K W is divided by w.
DualGradient gradient_dual(Matrix gram, const Samples& samples, const LabelKernel& label,
                           double ridge, Sides sides, Parallel& parallel) {
  const Index n = samples.n();
  const Vector over_w = weights_of(samples, 0, n).cwiseInverse();
  Matrix r(n, samples.m());
  samples.probs.load(0, n, r);
  residuals_in_place(samples.labels, r);
  r = label.apply(r);
  Matrix a = unset<Matrix>(n, n);
  a = gram;
  a.diagonal() += ridge * over_w;
  RidgeSolver solver(std::move(a), 0.0, parallel);

  Matrix v = r;  // V = W R F  (n, width)
  Matrix u = unset<Matrix>(n, r.cols());
  Vector per_class(r.cols());
  parallel.each_piece(r.cols(), kSolveColumns, [&](Index begin, Index columns) {
    auto some_v = v.middleCols(begin, columns);
    auto some_u = u.middleCols(begin, columns);
    solver.solve(some_v);
    some_u = product(gram, some_v);
    per_class.segment(begin, columns) = some_v.cwiseProduct(some_u).colwise().sum().transpose();
    solver.solve(some_u);  // U = W K V
  });

  DualGradient result;
  result.value = per_class.sum();
  Matrix r_bar = 2.0 * u;
  Matrix w;      // W, and
  Matrix inner;  // (K W D + D W K - D) W, if the gradient of the debias term goes through K
  if (sides.debias) {
    Inverse inverse(gram, std::move(solver), ridge * over_w, sides.through_kernel, parallel);
    const Vector a_ii = inverse.diagonal().cwiseProduct(over_w);
    const Vector norms = r.rowwise().squaredNorm();
    result.value -= a_ii.dot(norms);
    r_bar -= 2.0 * a_ii.asDiagonal() * r;
    if (sides.through_kernel) {
      inner = inverse.times_inner(norms.cwiseProduct(over_w), parallel);
      w = std::move(inverse.w);
    }
  }
  if (sides.through_kernel) {
    // V V' - U V' - V U' = half V' + V half'. D = diag(|r_i F|^2 / w_i) in the place of R F F'R'
    // gives W D W - A D W - W D A = -W (K W D + D W K - D) W, which the debiased value is without.
    const Matrix half = 0.5 * v - u;
    parallel.each_piece(n, kFactorColumns, [&](Index begin, Index columns) {
      const Index below = n - begin;
      auto some = gram.block(begin, begin, below, columns);
      some.setZero();
      add_product_nt(some, 1.0, half.bottomRows(below), v.middleRows(begin, columns));
      add_product_nt(some, 1.0, v.bottomRows(below), half.middleRows(begin, columns));
      if (sides.debias)
        add_product(some, 1.0, w.bottomRows(below), inner.middleCols(begin, columns));
    });
    mirror_lower(gram, parallel);
    result.gram = std::move(gram);
  }
  result.probs =
      label.kronecker() ? Matrix(-r_bar) : Matrix(-product(r_bar, label.factor.transpose()));
  return result;
}

}  // namespace ckce
