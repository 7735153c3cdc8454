// All that two classes need: Chebyshev moments of the rows of each cell. Merging is addition; the
// regulariser and the choice between `gaussian` and `linear_gaussian` enter only in the solve.
//
// With r = y - p the residual of class 1 (that of class 0 is -r), k nodes, and
// T_a T_b = (T_(a+b) + T_|a-b|) / 2, the sums of
//   w T_j        j <= 2k-2   S = A'diag(w)A          <= 4k-4   second moment of the influence
//   w r T_j      j <= k-1    B = A'diag(w)R          <= 3k-3   the same
//   w r^2 T_j    j <= 2k-2   debias term, the same
//   w p(1-p) T_j j <= 2k-2   floor
// are the state of a cell. A cell with at most k different p keeps them instead, each with the
// weights of its two labels: fewer numbers, and S is then known by a factor that did not round.
// Cells without rows do not exist.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/binary/grid.hpp"

namespace ckce {

// What the sums are for: the value; also debias term and floor; also the standard error, which
// without the rows needs the moments of high degree.
enum class Depth { kValue, kEstimate, kStream };

// How many degrees of each series a cell holds; the series follow each other in this order.
struct Degrees {
  Degrees(Index nodes, Depth depth);
  Index size() const { return w + wr + wr2 + wpq; }

  Index w, wr, wr2, wpq;
};

// Rows with the same p.
struct Point {
  double p;
  double w0, w1;  // weights of the two labels

  double w() const { return w0 + w1; }
  double wr() const { return w1 * (1.0 - p) - w0 * p; }
  double wr2() const { return w1 * (1.0 - p) * (1.0 - p) + w0 * p * p; }
  double wpq() const { return w() * p * (1.0 - p); }
};

struct Cell {
  std::int64_t cell = 0;
  std::vector<Point> points;
  std::vector<double> moments;  // (degrees.size(),) in the place of points, if these are too many

  bool dense() const { return !moments.empty(); }
};

class CellSums {
 public:
  CellSums(const Grid& grid, Depth depth)
      : grid_(grid), depth_(depth), degrees_(grid.nodes, depth) {}

  // Adds all rows, kBlock at a time; blocks are summed on their own and added in order, so bits
  // depend neither on threads nor, if calls start at multiples of kBlock, on the split. O(n nodes)
  void add(const Samples& samples, Parallel& parallel);
  void merge(const CellSums& other);
  void add(const Cell& cell);  // of a state with the same grid and depth

  const Grid& grid() const { return grid_; }
  Depth depth() const { return depth_; }
  const Degrees& degrees() const { return degrees_; }
  Index count() const { return static_cast<Index>(cells_.size()); }
  const Cell& cell(Index slot) const { return cells_[static_cast<std::size_t>(slot)]; }
  Cell dense_copy(Index slot) const;  // with moments in the place of points
  // Slots in the order of their cells.
  std::vector<Index> order() const;
  // Of a cell that is dense:
  const double* w(Index slot) const { return cell(slot).moments.data(); }
  const double* wr(Index slot) const { return w(slot) + degrees_.w; }
  const double* wr2(Index slot) const { return wr(slot) + degrees_.wr; }
  const double* wpq(Index slot) const { return wr2(slot) + degrees_.wr2; }
  // Of any cell: sum w, sum w r^2, and the first degrees of w r T_j as B has them.
  double weight_of(Index slot) const;
  double norms_of(Index slot) const;
  Vector residuals_of(Index slot) const;  // (nodes,)
  // Bytes that `cells` cells take if all are dense.
  static double price(double cells, Index nodes, Depth depth);
  // Bytes that this state takes.
  double bytes() const;

  Index rows = 0;
  double weight = 0.0;        // N = sum_i w_i
  double norms = 0.0;         // sum_i w_i r_i^2
  double linear_norms = 0.0;  // sum_i w_i r_i^2 (p_i^2 + (1 - p_i)^2)
  double off_simplex = 0.0;   // max_i |q_i0 + q_i1 - 1|

 private:
  Cell& at(std::int64_t cell);
  void add_point(Cell& cell, const Point& point);
  void add_to_moments(Cell& cell, const Point& point) const;
  void add_moments(Cell& cell, const double* moments);
  void make_dense(Cell& cell) const;

  Grid grid_;
  Depth depth_;
  Degrees degrees_;
  std::unordered_map<std::int64_t, Index> slots_;
  std::vector<Cell> cells_;  // in order of appearance
};

// T_0(t) .. T_(count-1)(t)
inline void chebyshev(double t, Index count, double* out) {
  out[0] = 1.0;
  if (count > 1) out[1] = t;
  for (Index j = 2; j < count; ++j) out[j] = 2.0 * t * out[j - 1] - out[j - 2];
}

}  // namespace ckce
