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
  parallel.each_piece(b.cols(), kSolveColumns, [&](Index begin, Index columns) {
    out.middleCols(begin, columns) = product(a, b.middleCols(begin, columns));
  });
  return out;
}

// A = W K W = W - W diag(ridge / w) W cancels ridge / k(q, q) digits; up to here there are enough.
constexpr double kMostCancelled = 1e4;

// W and what comes of it, (n, n). O(n^3)
struct Inverse {
  Matrix w;
  Matrix kw;  // K W, where W - W diag(ridge / w) W would cancel too much
  Vector ridges;

  Inverse(const Matrix& gram, const RidgeSolver& solver, const Vector& ridges_, Parallel& parallel)
      : w(solver.inverse(parallel)), ridges(ridges_) {
    if (ridges.maxCoeff() > kMostCancelled * gram.diagonal().minCoeff())
      kw = product_by_columns(gram, w, parallel);
  }

  Vector diagonal() const {  // of W K W
    if (kw.size() > 0) return w.cwiseProduct(kw).colwise().sum().transpose();
    return w.diagonal() - w.cwiseAbs2() * ridges;
  }

  Matrix whole(Parallel& parallel) const {  // W K W
    if (kw.size() > 0) return product_by_columns(w, kw, parallel);
    return w - product_by_columns(w, ridges.asDiagonal() * w, parallel);
  }
};

}  // namespace

// As in ckce_gram, sqrt(w) is taken out on both sides: W = (K + ridge diag(w)^-1)^-1, and V = W R
// F, U = W K V carry the weights already. A of eq. (7) is diag(w)^-1/2 W K W diag(w)^-1/2, so that
// the diagonal of W K W is divided by w.
DualGradient gradient_dual(const Matrix& gram, const Samples& samples, const LabelKernel& label,
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
  const RidgeSolver solver(std::move(a), 0.0, parallel);

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
  if (sides.through_kernel) {
    result.gram = Matrix::Zero(n, n);
    const Matrix half = 0.5 * v - u;  // V V' - U V' - V U' = half V' + V half'
    parallel.each_piece(n, kSolveColumns, [&](Index begin, Index columns) {
      auto some = result.gram.middleCols(begin, columns);
      add_product_nt(some, 1.0, half, v.middleRows(begin, columns));
      add_product_nt(some, 1.0, v, half.middleRows(begin, columns));
    });
  }
  if (sides.debias) {
    const Inverse inverse(gram, solver, ridge * over_w, parallel);
    const Vector a_ii = inverse.diagonal().cwiseProduct(over_w);
    const Vector norms = r.rowwise().squaredNorm();
    result.value -= a_ii.dot(norms);
    r_bar -= 2.0 * a_ii.asDiagonal() * r;
    if (sides.through_kernel) {  // D = diag(|r_i F|^2 / w_i): W D W - A D W - W D A
      Matrix half = 0.5 * inverse.w - inverse.whole(parallel);
      const Matrix dw = norms.cwiseProduct(over_w).asDiagonal() * inverse.w;
      half = product_by_columns(half, dw, parallel);
      result.gram -= half;
      result.gram -= half.transpose();
    }
  }
  result.probs =
      label.kronecker() ? Matrix(-r_bar) : Matrix(-product(r_bar, label.factor.transpose()));
  return result;
}

}  // namespace ckce
