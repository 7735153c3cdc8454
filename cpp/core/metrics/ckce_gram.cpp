// CKCE = Tr V'K V, V = (K + ridge I)^-1 R F: eq. (7) of the paper, with K as a matrix.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/memory.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

// A_jj = W_j' K W_j, column by column of W. O(4 n^3)
Vector diagonal_by_products(const Matrix& gram, const RidgeSolver& solver, Parallel& parallel) {
  Vector a(gram.rows());
  parallel.each_piece(gram.rows(), kSolveColumns, [&](Index begin, Index columns) {
    Matrix w = Matrix::Zero(gram.rows(), columns);
    w.middleRows(begin, columns).setIdentity();
    solver.solve(w);
    a.segment(begin, columns) = w.cwiseProduct(product(gram, w)).colwise().sum().transpose();
  });
  return a;
}

// A_jj = W_jj - ridge sum_i W_ij^2 / w_i, from W K W = W - ridge W diag(w)^-1 W and the lower
// triangle of W. That cancels ridge / (w k(q, q)) digits. O(2/3 n^3)
Vector diagonal_by_difference(const RidgeSolver& solver, const Vector& over_w, double ridge,
                              Parallel& parallel) {
  const Index n = over_w.size();
  Vector w_jj(n);
  Vector sums = Vector::Zero(n);
  parallel.each(count_pieces(n, kSolveColumns), [&] {
    return [&](Index task) {
      const Index begin = task * kSolveColumns;
      const Index columns = std::min(kSolveColumns, n - begin);
      const Index below = n - begin - columns;
      Matrix w = Matrix::Identity(columns + below, columns);
      solver.solve_from(begin, w);
      w_jj.segment(begin, columns) = w.diagonal();
      w = w.cwiseAbs2();
      const Vector of_columns = w.transpose() * over_w.tail(columns + below);
      const Vector of_rows = w.bottomRows(below) * over_w.segment(begin, columns);
      parallel.in_turn(task, [&] {
        sums.segment(begin, columns) += of_columns;
        sums.tail(below) += of_rows;
      });
    };
  });
  return w_jj - ridge * sums;
}

// diag(W K W), W = (K + ridge diag(w)^-1)^-1: the quick way where it keeps about 11 digits.
Vector diagonal_of_wkw(const Matrix& gram, const RidgeSolver& solver, const Vector& over_w,
                       double ridge, Parallel& parallel) {
  const double mean_k = gram.diagonal().mean();
  if (ridge * over_w.maxCoeff() > 1e4 * mean_k) return diagonal_by_products(gram, solver, parallel);
  return diagonal_by_difference(solver, over_w, ridge, parallel);
}

// K V, panel by panel of the rows of V, so that no sum is long. (n, columns)
Matrix gram_times(const Matrix& gram, const Matrix& v) {
  Matrix kv = Matrix::Zero(v.rows(), v.cols());
  for (Index begin = 0; begin < v.rows(); begin += kPanel) {
    const Index rows = std::min(kPanel, v.rows() - begin);
    add_product(kv, 1.0, gram.middleCols(begin, rows), v.middleRows(begin, rows));
  }
  return kv;
}

// Columns of R F: of R itself, read from the caller's rows, or of the product with F.
class ResidualColumns {
 public:
  ResidualColumns(const Samples& samples, const LabelKernel& label) : samples_(samples) {
    if (label.kronecker()) return;
    Matrix q(samples.n(), samples.m());
    samples.probs.load(0, samples.n(), q);
    residuals_in_place(samples.labels, q);
    product_ = label.apply(q);
  }

  Index width() const { return product_.size() > 0 ? product_.cols() : samples_.m(); }
  Matrix load(Index begin, Index columns) const {
    if (product_.size() > 0) return product_.middleCols(begin, columns);
    Probs some = samples_.probs;
    some.data += begin * some.col_stride;
    some.m = columns;
    Matrix r(samples_.n(), columns);
    some.load(0, samples_.n(), r);
    r = -r;
    for (Index i = 0; i < r.rows(); ++i) {
      const Index column = samples_.labels[i] - begin;
      if (column >= 0 && column < columns) r(i, column) += 1.0;
    }
    return r;
  }

 private:
  const Samples& samples_;
  Matrix product_;
};

// What is summed over the columns, for every row. (n,) each
struct RowSums {
  Vector r2, v2, kv2, rest2, influence;

  explicit RowSums(Index n)
      : r2(Vector::Zero(n)),
        v2(Vector::Zero(n)),
        kv2(Vector::Zero(n)),
        rest2(Vector::Zero(n)),
        influence(Vector::Zero(n)) {}
};

// The bound for V as it was computed, from what is left of its system; nothing is assumed of the
// solver. Rows of K V are off by at most g = (depth u max k + entry_error) sum_j |v_j|. That counts
// twice in Tr V'K V, where rows repeat as eps / lambda^2: K is singular then, V as large as R /
// ridge, and the value does not grow with it.
double bound_of(const RowSums& sums, double value, double largest_k, double entry_error,
                const LabelKernel& label, const Vector& w, double ridge) {
  const Index n = w.size();
  const double depth = depth_in_panels(n);
  const Vector v = sums.v2.cwiseSqrt();
  const Vector kv = sums.kv2.cwiseSqrt();
  const double g = (depth * kUnit * largest_k + entry_error) * v.sum();
  const double form_error = g * v.sum() + depth * kUnit * v.dot(kv);
  const Vector rounded = sums.r2.cwiseSqrt() + kv + ridge * v.cwiseQuotient(w);
  const Vector rest = sums.rest2.cwiseSqrt() + Vector::Constant(n, g) + 4.0 * kUnit * rounded;
  const double rho = rest.cwiseProduct(w.cwiseSqrt()).norm() +
                     residual_error(label, w.sum(), std::sqrt(sums.r2.dot(w)));
  return finish_bound(residual_bound(std::max(value, 0.0), form_error, rho, ridge), value, label,
                      w.sum(), ridge);
}

// The mean of r_i L r_i' over labels drawn from q_i, a panel of rows at a time. (n,)
Vector spreads_of(const Samples& samples, const LabelKernel& label) {
  Vector spreads(samples.n());
  for (Index begin = 0; begin < samples.n(); begin += kPanel) {
    const Index rows = std::min(kPanel, samples.n() - begin);
    Matrix q(rows, samples.m());
    samples.probs.load(begin, rows, q);
    spreads.segment(begin, rows) = label.spreads(q);
  }
  return spreads;
}

// sqrt(w) K sqrt(w) + ridge I, with sqrt(w) taken out on both sides: scaling K would round equal
// rows apart, and V, which is large where K is singular, multiplies that by 1 / ridge^2.
RidgeSolver factorise(const Matrix& gram, const Vector& over_w, double ridge, Parallel& parallel) {
  Matrix a = unset<Matrix>(gram.rows(), gram.rows());
  a = gram;
  a.diagonal() += ridge * over_w;
  return RidgeSolver(std::move(a), 0.0, parallel);
}

// r2 holds |r_i F|^2. O(2/3 n^3)
void add_terms(const Matrix& gram, const Samples& samples, const LabelKernel& label,
               const ResidualColumns& residuals, const Vector& r2, const RidgeSolver& solver,
               double ridge, Solution& solution, Parallel& parallel) {
  if (samples.groups) {
    const Matrix r = residuals.load(0, residuals.width());
    solution.debias = debias_by_group(gram, *samples.groups, r, solver, parallel);
    solution.floor = kNoFloor;
    return;
  }
  const Vector w = weights_of(samples, 0, samples.n());
  const Vector a_ii =
      diagonal_of_wkw(gram, solver, w.cwiseInverse(), ridge, parallel).cwiseQuotient(w);
  solution.debias = a_ii.dot(r2);
  solution.floor = a_ii.dot(spreads_of(samples, label));
}

}  // namespace

void add_gram_terms(const Matrix& gram, const Samples& samples, const LabelKernel& label,
                    double ridge, Solution& solution, Parallel& parallel) {
  const ResidualColumns residuals(samples, label);
  const Vector w = weights_of(samples, 0, samples.n());
  const Vector r2 = residuals.load(0, residuals.width()).rowwise().squaredNorm();
  const RidgeSolver solver = factorise(gram, w.cwiseInverse(), ridge, parallel);
  add_terms(gram, samples, label, residuals, r2, solver, ridge, solution, parallel);
}

Solution ckce_gram(const Matrix& gram, double entry_error, const Samples& samples,
                   const LabelKernel& label, double ridge, bool full, Parallel& parallel) {
  const Index n = samples.n();
  const ResidualColumns residuals(samples, label);
  const Vector w = weights_of(samples, 0, n);
  const Vector over_w = w.cwiseInverse();
  const RidgeSolver solver = factorise(gram, over_w, ridge, parallel);

  Solution solution;
  solution.per_class.resize(residuals.width());
  RowSums sums(n);
  parallel.each(count_pieces(residuals.width(), kSolveColumns), 9 * kSolveColumns * n, [&] {
    return [&](Index task) {
      const Index begin = task * kSolveColumns;
      const Index columns = std::min(kSolveColumns, residuals.width() - begin);
      const Matrix r = residuals.load(begin, columns);
      Matrix v = r;  // V = W R, W = (K + ridge diag(w)^-1)^-1  (n, columns)   eq. (7)
      solver.solve(v);
      const Matrix kv = gram_times(gram, v);
      solution.per_class.segment(begin, columns) = v.cwiseProduct(kv).colwise().sum().transpose();
      if (!full) return;
      Matrix u = over_w.asDiagonal() * v;  // U = K W diag(w)^-1 V
      const Matrix rest = r - kv - ridge * u;
      solver.solve(u);
      u = product(gram, u);
      parallel.in_turn(task, [&] {
        sums.r2 += r.rowwise().squaredNorm();
        sums.v2 += v.rowwise().squaredNorm();
        sums.kv2 += kv.rowwise().squaredNorm();
        sums.rest2 += rest.rowwise().squaredNorm();
        sums.influence += u.cwiseProduct(v).rowwise().sum();
      });
    };
  });
  solution.value = solution.per_class.sum();
  if (!full) return solution;

  add_terms(gram, samples, label, residuals, sums.r2, solver, ridge, solution, parallel);
  solution.bound =
      bound_of(sums, solution.value, gram.diagonal().maxCoeff(), entry_error, label, w, ridge);
  solution.influence = std::move(sums.influence);
  finish_influence(solution.influence, samples, 2.0 * total_weight(samples) * ridge);
  return solution;
}

}  // namespace ckce
