#include "core/linalg/ridge_solve.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/base/sizes.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// Columns j, ... -= sum_k<j of column k times a_jk, kColumns of them in kPackets registers of rows
// i, ... each: what is read serves several sums.
template <int kPackets, int kColumns>
void subtract_columns(MatrixRef& a, Index i, Index j) {
  using namespace Eigen::internal;
  Packet sums[kColumns][kPackets];
  for (int c = 0; c < kColumns; ++c)
    for (int p = 0; p < kPackets; ++p) sums[c][p] = ploadu<Packet>(&a(i + p * kWidth, j + c));
  for (Index k = 0; k < j; ++k) {
    Packet a_k[kPackets];
    for (int p = 0; p < kPackets; ++p) a_k[p] = ploadu<Packet>(&a(i + p * kWidth, k));
    for (int c = 0; c < kColumns; ++c) {
      const Packet a_jk = pset1<Packet>(a(j + c, k));
      for (int p = 0; p < kPackets; ++p) sums[c][p] = pnmadd(a_jk, a_k[p], sums[c][p]);
    }
  }
  for (int c = 0; c < kColumns; ++c)
    for (int p = 0; p < kPackets; ++p) pstoreu(&a(i + p * kWidth, j + c), sums[c][p]);
}

// Columns j, ..., j + count - 1 of L in rows i, ..., as many as a register holds, from the rows
// j, ... of L: x = a L^-T.
template <class Rows>
void solve_row(MatrixRef& a, Index i, Index j, Index count) {
  using namespace Eigen::internal;
  for (Index column = j; column < j + count; ++column) {
    Rows x = ploadu<Rows>(&a(i, column));
    for (Index k = j; k < column; ++k)
      x = pnmadd(pset1<Rows>(a(column, k)), ploadu<Rows>(&a(i, k)), x);
    pstoreu(&a(i, column), pdiv(x, pset1<Rows>(a(column, column))));
  }
}

// Columns j, ... of L from those before. Whole registers end at the last row; what they change
// above the diagonal is never read.
template <int kColumns>
void factor_columns(MatrixRef& a, Index j) {
  constexpr int kPackets = kRegisters / 8;
  const Index n = a.rows();
  Index i = n - count_pieces(n - j, kWidth) * kWidth;
  if (i < 0) {  // no room above
    i += kWidth;
    for (Index column = j; column < j + kColumns; ++column)
      for (Index row = j; row < i; ++row)
        for (Index k = 0; k < j; ++k) a(row, column) -= a(column, k) * a(row, k);
  }
  for (; i + kPackets * kWidth <= n; i += kPackets * kWidth)
    subtract_columns<kPackets, kColumns>(a, i, j);
  for (; i + kWidth <= n; i += kWidth) subtract_columns<1, kColumns>(a, i, j);
  const Index below = j + kColumns;
  for (Index row = j; row < below; ++row) {
    solve_row<double>(a, row, j, row - j);
    for (Index k = j; k < row; ++k) a(row, row) -= a(row, k) * a(row, k);
    if (!(a(row, row) > 0.0))
      throw std::domain_error(
          "K + lambda n I is not positive definite in float64: pass a larger regularization, "
          "and if the kernel is a callable, one that is positive semi-definite");
    a(row, row) = std::sqrt(a(row, row));
  }
  i = below;
  for (; (n - i) % kWidth != 0; ++i) solve_row<double>(a, i, j, kColumns);
  for (; i < n; i += kWidth) solve_row<Packet>(a, i, j, kColumns);
}

// a = L L' in place (lower triangle), unblocked.
void factor_diagonal_block(MatrixRef a) {
  constexpr int kColumns = 4;
  Index j = 0;
  for (; j + kColumns <= a.rows(); j += kColumns) factor_columns<kColumns>(a, j);
  for (; j < a.rows(); ++j) factor_columns<1>(a, j);
}

}  // namespace

RidgeSolver::RidgeSolver(Matrix a, double ridge, Parallel& parallel) : factor_(std::move(a)) {
  const Index n = size();
  factor_.diagonal().array() += ridge;
  for (Index k = 0; k < n; k += kFactorColumns) {
    const Index step = std::min(kFactorColumns, n - k);
    auto diagonal = factor_.block(k, k, step, step);
    factor_diagonal_block(diagonal);
    const Index below = k + step;
    const Index tiles = count_pieces(n - below, kFactorTile);
    const auto rows = [&](Index tile) {
      const Index begin = below + tile * kFactorTile;
      return std::pair<Index, Index>(begin, std::min(kFactorTile, n - begin));
    };
    parallel.each(tiles, [&] {
      return [&](Index tile) {
        const auto [begin, count] = rows(tile);
        auto panel = factor_.block(begin, k, count, step);
        solve_lower_transposed_from_right(diagonal, panel);
      };
    });
    parallel.each(tiles * (tiles + 1) / 2, [&] {
      return [&](Index task) {
        Index i = 0;
        while ((i + 1) * (i + 2) / 2 <= task) ++i;
        const auto [row, n_rows] = rows(i);
        const auto [column, n_columns] = rows(task - i * (i + 1) / 2);
        add_product_nt(factor_.block(row, column, n_rows, n_columns), -1.0,
                       factor_.block(row, k, n_rows, step),
                       factor_.block(column, k, n_columns, step));
      };
    });
  }
}

void RidgeSolver::solve(MatrixRef b) const {
  solve_lower(factor_, b);
  solve_lower_transposed(factor_, b);
}

// W = X'X, X = L^-1, in the place of L and in square blocks, so that all but the diagonal blocks
// are products: X_ij = -sum_k X_ik L_kj X_jj from the last column on, then W_ij = sum_k X_ki' X_kj
// from the first row on.
Matrix RidgeSolver::into_inverse(Parallel& parallel) && {
  Matrix x = std::move(factor_);
  const Index n = x.rows();
  const Index last = (count_pieces(n, kSolveColumns) - 1) * kSolveColumns;
  for (Index j = last; j >= 0; j -= kSolveColumns) {
    const Index columns = std::min(kSolveColumns, n - j);
    const Index below = n - j - columns;
    Matrix corner = Matrix::Identity(columns, columns);
    solve_lower(x.block(j, j, columns, columns), corner);
    x.block(j, j, columns, columns) = corner;
    const Matrix left = product(x.block(j + columns, j, below, columns), corner);
    parallel.each_piece(below, kSolveColumns, [&](Index begin, Index rows) {
      auto out = x.block(j + columns + begin, j, rows, columns);
      out.setZero();
      add_product(out, -1.0, x.block(j + columns + begin, j + columns, rows, begin + rows),
                  left.topRows(begin + rows));
    });
  }
  for (Index i = 0; i < n; i += kSolveColumns) {
    const Index rows = std::min(kSolveColumns, n - i);
    Matrix out = Matrix::Zero(rows, i + rows);
    parallel.each_piece(i + rows, kFactorTile, [&](Index begin, Index columns) {
      add_product_tn(out.middleCols(begin, columns), 1.0, x.block(i, i, n - i, rows),
                     x.block(i, begin, n - i, columns));
    });
    x.block(i, 0, rows, i + rows) = out;
  }
  return x;
}

void RidgeSolver::solve_from(Index begin, MatrixRef b) const {
  const auto below = factor_.bottomRightCorner(size() - begin, size() - begin);
  solve_lower(below, b);
  solve_lower_transposed(below, b);
}

// With A + ridge I = L L': its square is L (L'L) L' = P P', P = L S, S S' = L'L, and J = P^-1. S
// comes from a matrix of the same condition, not of its square.
Matrix RidgeSolver::root_of_square(Parallel& parallel) const {
  constexpr double kLargestCondition = 1e6;  // of what a product with J keeps the digits
  if (size() == 0) return {};
  if (factor_.diagonal().maxCoeff() > std::sqrt(kLargestCondition) * factor_.diagonal().minCoeff())
    return {};
  Matrix p;
  {  // four of these matrices at a time
    const Matrix l = factor_.triangularView<Eigen::Lower>();
    Matrix l_l = Matrix::Zero(size(), size());
    add_gram(l_l, l);
    Matrix s = std::move(RidgeSolver(std::move(l_l), 0.0, parallel).factor_);
    s.triangularView<Eigen::StrictlyUpper>().setZero();
    p = product(l, s);
  }
  Matrix j = Matrix::Zero(size(), size());
  parallel.each_piece(size(), kSolveColumns, [&](Index begin, Index columns) {
    const Index below = size() - begin;
    Matrix some = Matrix::Identity(below, columns);
    solve_lower(p.bottomRightCorner(below, below), some);
    j.block(begin, begin, below, columns) = some;
  });
  return j;
}

Vector RidgeSolver::solved_norms(const Matrix& root, const In& b) const {
  if (size() == 0) return Vector::Zero(b.rows());
  if (root.size() == 0) {
    Matrix w_b = b.transpose();
    solve(w_b);
    return w_b.colwise().squaredNorm().transpose();
  }
  return norms_by_root(root, b);
}

Vector norms_by_root(const Matrix& root, const In& b) {
  Vector norms = Vector::Zero(b.rows());
  for (Index begin = 0; begin < root.rows(); begin += kSolveColumns) {
    const Index end = std::min(begin + kSolveColumns, root.rows());
    Matrix some = Matrix::Zero(b.rows(), end - begin);
    add_product_nt(some, 1.0, b.leftCols(end), root.block(begin, 0, end - begin, end));
    norms += some.rowwise().squaredNorm();
  }
  return norms;
}

void RidgeSolver::solve(MatrixRef b, Parallel& parallel) const {
  parallel.each_piece(b.cols(), kSolveColumns,
                      [&](Index begin, Index columns) { solve(b.middleCols(begin, columns)); });
}

}  // namespace ckce
