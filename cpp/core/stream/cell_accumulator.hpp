// The streaming state of two classes: exact CKCE and JKCE under a kernel with a Gaussian part, with
// standard errors, from the moments of cell_sums.hpp. Their number depends on the bandwidth, not on
// the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/binary/cell_sums.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/scores.hpp"
#include "core/stream/accumulator.hpp"
#include "core/stream/blocked.hpp"
#include "core/stream/row_sums.hpp"

namespace ckce {

// Cells as arrays: numbers of the cells, their points (-1: moments), and what they hold.
struct PackedCells {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> points;
  Vector numbers;
};
struct CellTally {
  CellTally(const Grid& grid, Index n_bins);
  void add(const CellTally& other);

  // rows, of the cells weight, norms, linear_norms, off_simplex, then hits, confidence, brier,
  // log_loss, sharpness, residual (2), labels (2), bins (B, 4)
  Vector pack() const;
  // Throws std::invalid_argument if no rows can have left such numbers and cells.
  void unpack(const Vector& numbers, const PackedCells& packed);
  // The same followed by the moments of all cells of the grid, so that adding two such vectors
  // merges their rows (off_simplex becomes a bound of the largest).
  Vector pack_dense() const;
  void unpack_dense(const Vector& numbers);

  Index rows = 0;
  Scores scores;
  Matrix bins;  // as in Tally
  CellSums cells;

 private:
  void unpack(const Vector& numbers);
  void check() const;
};

using CellState = BlockedState<CellTally>;

PackedCells pack_cells(const CellSums& cells);

class CellAccumulator : public Blocked<CellTally> {
 public:
  // `predicted`: see row_sums.
  CellAccumulator(double bandwidth, bool linear_part, LabelKernel label, Index n_bins,
                  std::optional<Index> predicted);

  AccumulatorResult solve(std::optional<double> regularization, Parallel& parallel) const;
  // The witness of class 1, F(p) = sum_b g_b k(x_b, p): x and g side by side. (points, 2)
  Matrix witness(std::optional<double> regularization, Parallel& parallel) const;
  // Bytes that the state takes, and that `solve` takes beyond it.
  double state_price(Parallel& parallel) const;
  double solve_price(Parallel& parallel) const;
  CellTally empty() const { return CellTally(grid_, n_bins_); }
  const Grid& grid() const { return grid_; }

 private:
  void add_rows(const std::vector<Samples>& pieces, CellTally& tally,
                Parallel& parallel) const override;

  Grid grid_;
  bool linear_part_;
  LabelKernel label_;
  Index n_bins_;
  std::optional<Index> predicted_;
};

}  // namespace ckce
