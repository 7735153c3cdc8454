// CKCE = Tr V'K V, V = (K + ridge I)^-1 R F: eq. (7) of the paper, with K as a matrix.
#include <cmath>
#include <limits>
#include <utility>

#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

// A_jj = W_j' K W_j, column by column of W. W - ridge W^2 would save the product with K, but it
// cancels ridge / k(q, q) digits. O(n^3)
Vector diagonal_of_wkw(const Matrix& gram, const RidgeSolver& solver, Parallel& parallel) {
  Vector a(gram.rows());
  parallel.each_piece(gram.rows(), kSolveColumns, [&](Index begin, Index columns) {
    Matrix w = Matrix::Zero(gram.rows(), columns);
    w.middleRows(begin, columns).setIdentity();
    solver.solve(w);
    a.segment(begin, columns) = w.cwiseProduct(product(gram, w)).colwise().sum().transpose();
  });
  return a;
}

}  // namespace

Solution ckce_gram(const Matrix& gram, const Samples& samples, const LabelKernel& label,
                   double ridge, bool full, Parallel& parallel) {
  const Index n = samples.n();
  Matrix q(n, samples.m());
  samples.probs.load(0, n, q);
  Vector spreads;
  if (full) spreads = label.spreads(q);
  residuals_in_place(samples.labels, q);
  const Matrix r = label.apply(q);
  const Vector norms = r.rowwise().squaredNorm();
  // sqrt(w) K sqrt(w) + ridge I, with sqrt(w) taken out on both sides: scaling K would round equal
  // rows apart, and V, which is large where K is singular, multiplies that by 1 / ridge^2.
  const Vector w = weights_of(samples, 0, n);
  Matrix a = gram;
  a.diagonal().array() += ridge / w.array();
  const RidgeSolver solver(std::move(a), 0.0, parallel);
  Matrix v = r;  // V = W R, W = (K + ridge diag(w)^-1)^-1  (n, width)   eq. (7)
  solver.solve(v, parallel);
  const Matrix kv = product(gram, v);

  Solution solution;
  solution.per_class = v.cwiseProduct(kv).colwise().sum().transpose();
  solution.value = solution.per_class.sum();
  if (!full) return solution;

  if (samples.groups) {
    solution.debias = debias_by_group(gram, *samples.groups, r, solver, parallel);
    solution.floor = kNoFloor;
  } else {
    const Vector a_ii = diagonal_of_wkw(gram, solver, parallel).cwiseQuotient(w);
    solution.debias = a_ii.dot(norms);
    solution.floor = a_ii.dot(spreads);
  }
  const double eps = std::numeric_limits<double>::epsilon();
  // The last term is what the product K V rounds: where rows repeat, K is singular, V is as large
  // as R / ridge, and the value does not grow with it.
  solution.bound =
      round_off_bound(condition_of(ridge, samples), solution.value + solution.debias) +
      eps * std::sqrt(static_cast<double>(n)) * gram.diagonal().maxCoeff() * v.squaredNorm();

  Matrix u = w.cwiseInverse().asDiagonal() * v;  // U = K W diag(w)^-1 V
  solver.solve(u, parallel);
  u = product(gram, u);
  solution.influence = u.cwiseProduct(v).rowwise().sum();
  finish_influence(solution.influence, samples, 2.0 * total_weight(samples) * ridge);
  return solution;
}

}  // namespace ckce
