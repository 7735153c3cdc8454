// Products with M on series of all cells: z (nodes, cells) -> M z, and its values at rows.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/binary/cell_rows.hpp"
#include "core/binary/cell_sums.hpp"
#include "core/binary/grid.hpp"

namespace ckce {

class CellKernel {
 public:
  CellKernel(const CellSums& sums, bool linear, Parallel& parallel);

  const Grid& grid() const { return grid_; }
  bool linear() const { return linear_; }
  Index nodes() const { return grid_.nodes; }
  Index count() const { return static_cast<Index>(cells_.size()); }
  const std::vector<std::int64_t>& cells() const { return cells_; }  // sorted
  std::int64_t cell(Index c) const { return cells_[static_cast<std::size_t>(c)]; }
  Index slot(Index c) const { return slots_[static_cast<std::size_t>(c)]; }  // in the sums
  // Past the last cell that cell c sees.
  Index end(Index c) const { return ends_[static_cast<std::size_t>(c)]; }
  const Matrix& coefficients() const { return coefficients_; }
  // The same between a cell and those from itself downwards: each block is transposed.
  const Matrix& coefficients_up() const { return coefficients_up_; }
  // Coefficients of p and 1 - p; those of higher degree are 0. (2, 2)
  Eigen::Matrix2d line(Index c) const;

  // The Gaussian part of M z, and N'z. O(cells nodes^2)
  Matrix gaussian(const Matrix& z, Parallel& parallel) const;
  Eigen::Vector2d line_sums(const Matrix& z) const;
  // M z
  Matrix apply(const Matrix& z, Parallel& parallel) const;
  // The sum of z'M z over several z, whose series stand below each other: (nodes cells, columns).
  double forms(const Matrix& z) const;

 private:
  Grid grid_;
  bool linear_;
  std::vector<Index> slots_;
  std::vector<std::int64_t> cells_;
  std::vector<Index> ends_;
  Matrix coefficients_, coefficients_up_;
};

// Values of several functions, given by their series in each cell, at the rows of a block.
class CellFunctions {
 public:
  // series[f].col(c) belongs to cells[c].
  CellFunctions(const std::vector<std::int64_t>& cells, std::vector<Matrix> series);
  // out(i, f) for row i of the block; 0 in a cell that has no series. (kBlock, functions)
  void evaluate(const CellRows& rows, Matrix& out) const;

 private:
  std::unordered_map<std::int64_t, Index> index_;
  std::vector<Matrix> series_;
};

}  // namespace ckce
