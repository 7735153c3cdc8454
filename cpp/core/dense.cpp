#include "dense.hpp"

#include <limits>

#include "products.hpp"
#include "ridge_solve.hpp"

namespace ckce {
namespace {

// A_jj = W_j' K W_j, column by column of W. W - ridge W^2 would save the product with K, but it
// cancels ridge / k(q, q) digits. O(n^3)
Vector diagonal_of_wkw(const Matrix& gram, const RidgeSolver& solver, Parallel& parallel) {
  constexpr Index kColumns = 64;
  const Index n = gram.rows();
  Vector a(n);
  parallel.each((n + kColumns - 1) / kColumns, [&] {
    return [&](Index task) {
      const Index begin = task * kColumns;
      const Index columns = std::min(kColumns, n - begin);
      Matrix w = Matrix::Zero(n, columns);
      w.middleRows(begin, columns).setIdentity();
      solver.solve(w);
      a.segment(begin, columns) = w.cwiseProduct(product(gram, w)).colwise().sum().transpose();
    };
  });
  return a;
}

}  // namespace

Solution solve_gram(Matrix gram, const Samples& samples, const LabelKernel& label, double ridge,
                    bool full, Parallel& parallel) {
  const Index n = samples.n();
  Matrix q(n, samples.m());
  samples.probs.load(0, n, q);
  Vector spreads;
  if (full) spreads = label.spreads(q);
  residuals_in_place(samples.labels, q);
  Matrix r = label.apply(q);
  const Vector norms = r.rowwise().squaredNorm();
  if (samples.weights) {
    const Vector root = weights_of(samples, 0, n).cwiseSqrt();
    gram = root.asDiagonal() * gram * root.asDiagonal();
    r = root.asDiagonal() * r;
  }
  const RidgeSolver solver(gram, ridge, parallel);
  Matrix v = r;  // V = W R
  solver.solve(v, parallel);
  const Matrix kv = product(gram, v);

  Solution solution;
  solution.per_class = v.cwiseProduct(kv).colwise().sum().transpose();
  solution.value = solution.per_class.sum();
  if (!full) return solution;

  const Vector a = diagonal_of_wkw(gram, solver, parallel);
  solution.debias = a.dot(norms);  // A_ii carries w_i, so |r_i|^2 does not
  solution.floor = a.dot(spreads);
  const double lambda = ridge / total_weight(samples);
  solution.bound = 32.0 * std::numeric_limits<double>::epsilon() * (1.0 + 2.0 / lambda) *
                   (solution.value + solution.debias);

  Matrix u = v;  // U = K W V
  solver.solve(u, parallel);
  u = product(gram, u);
  solution.influence = u.cwiseProduct(v).rowwise().sum();
  finish_influence(solution.influence, samples, 2.0 * total_weight(samples) * ridge);
  return solution;
}

}  // namespace ckce
