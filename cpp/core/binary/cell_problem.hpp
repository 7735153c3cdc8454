// The dual problem of two classes, compressed to a few unknowns a cell.
//
// With K = A M A' (grid.hpp), S = A'diag(w)A and sqrt(w) A = Q F', Q orthonormal, S = F F' cell by
// cell, the dual problem is that of K~ = F'M F and b = Q'sqrt(w)r, one unknown for each column of
// F, at most `nodes` a cell:
//
//   V = W b,  W = (K~ + ridge I)^-1,  CKCE = l V'K~ V,  f = M F V,  r_i - f(p_i) = ridge v_i
//
// where r = y - p is the residual of class 1, R = r [-1, 1], and l = [-1 1] L [-1 1]' is all that a
// label kernel L changes (2 for the Kronecker kernel). The Gaussian part of K~ is block-banded; the
// linear part N~ N~', N~ = F'N, is a rank-2 update: with W_0, P_0 = W_0 T~ W_0 of the Gaussian part
// alone, X = W_0 N~, Y = P_0 N~ and C = (I + N~'X)^-1,
//
//   W = W_0 - X C X',   P = W K~ W = P_0 - Y C X' - X C Y' + X C (I + N~'Y) C X'.
//
// A_ii of the debias term and the floor is q_i'P q_i with a_i = F q_i.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/binary/banded.hpp"
#include "core/binary/cell_kernel.hpp"
#include "core/binary/cell_sums.hpp"

namespace ckce {

// Unknowns of a block of the band, if cells are smaller.
constexpr Index kBlockWidth = 40;

class CellProblem {
 public:
  // O(cells nodes^3)
  CellProblem(const CellSums& sums, bool linear, double ridge, Parallel& parallel);

  const CellKernel& kernel() const { return kernel_; }
  Index begin(Index c) const { return begins_[static_cast<std::size_t>(c)]; }  // of its unknowns
  Index rank(Index c) const { return begin(c + 1) - begin(c); }
  Index rank() const { return begins_.back(); }
  // What F F' of a dense cell has on its diagonal beyond S, a rounding of the weight.
  double jitter(Index c) const { return jitter_[c]; }

  bool dense(Index c) const { return sums_.cell(kernel_.slot(c)).dense(); }
  // F of a cell (nodes, rank(c)), lower triangular if the cell is dense
  auto basis(Index c) const { return basis_.middleCols(begin(c), rank(c)); }

  Vector compress_residuals() const;  // b (rank,)
  // From sums of w s a_i (dense cells) and of w s (points) to b, in place. (rank, columns)
  void compress(MatrixRef b) const;
  double form(const Vector& v, Parallel& parallel) const;  // v'K~ v
  // W b  (rank, columns)
  Matrix solve(const Matrix& b, Parallel& parallel) const;
  // The same for one column, with a step of iterative refinement where lambda is small: the update
  // alone loses digits where the Gaussian part is nearly linear too.
  Vector solve_refined(const Vector& b, Parallel& parallel) const;
  // The sum of b'W K~ W b over the columns b. Products of matrices are faster than of vectors.
  double forms(const Matrix& b) const;
  // F v  (rank,) -> (nodes, cells), and F'g back
  Matrix expand(const Vector& v) const;
  Vector project(const Matrix& g) const;
  // take(c, P) for every cell and its block P of W K~ W (rank(c), rank(c)), by up to two threads.
  // Five times the work of the factorisation.
  using TakeCell = std::function<void(Index c, const Matrix& p)>;
  void each_diagonal(const TakeCell& take, Parallel& parallel) const;
  // The same for the blocks of W.
  void each_inverse(const TakeCell& take, Parallel& parallel) const;
  // sum_i A_ii r_i^2 and sum_i A_ii p_i (1 - p_i)
  std::pair<double, double> diagonal_terms(Parallel& parallel) const;

 private:
  void factor_cells(Parallel& parallel);
  std::vector<BandBlock> cut_into_blocks();
  void fill(Index block, Index row, MatrixRef columns) const;
  // visit(c, P_0, W_0) for every cell and its blocks of the Gaussian part alone
  template <class Visit>
  void each_block(Visit visit, Parallel& parallel) const;
  Eigen::RowVector2d diagonal_terms(Index c, const Matrix& p) const;

  const CellSums& sums_;
  CellKernel kernel_;
  double ridge_;
  bool whole_;                      // every cell sees every other: the linear part is in the band
  bool update_ = false;             // the linear part is a rank-2 update
  Matrix basis_;                    // F of all cells side by side (nodes, rank)
  std::vector<Index> begins_;       // (cells + 1,)
  Vector jitter_;                   // (cells,)
  std::vector<Index> members_;      // (blocks + 1,), of a block's cells
  std::unique_ptr<Banded> factor_;  // of K~, or of its Gaussian part
  Matrix n_, x_;                    // N~ and X (rank, 2)
  Eigen::Matrix2d c_ = Eigen::Matrix2d::Identity();
};

}  // namespace ckce
