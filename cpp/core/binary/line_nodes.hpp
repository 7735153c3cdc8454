// Rows of two classes, gathered at nodes: what they add to sums of g(p) is known from few p.
//
// x = min(p, 1 - p) is cut into cells of a power of 2, at most the bandwidth of the features. In a
// cell with at most kNodes different x these are its nodes. In any other g is the polynomial that
// interpolates it at kNodes Chebyshev nodes:
//
//   sum_i w_i g(p_i) = sum_j W_j g(p_j),  W_j = sum_i w_i l_j(p_i),  g(p_i) = sum_j l_j(p_i) g(p_j)
//
// with Lagrange's l_j. g is a product of two features or of q^(1/2), q^(3/2), ...: analytic in x
// but for the roots, so the cell at 0 is cut at a quarter of it, and both parts have sqrt(x) as
// their coordinate. Interpolation leaves less than 1e-15 of products of Gaussians, powers and
// shapes from 22 nodes on.
//
// A row that misses the simplex is taken at q / (q_0 + q_1); if one misses it by more than float32
// rounds, there are no nodes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/binary/binary_rows.hpp"
#include "core/features/line_sections.hpp"

namespace ckce {

constexpr Index kNodes = 24;
constexpr Index kLineRows = 8 * kBlock;  // of a task

// The cells of x in [0, 1/2], twice: p = x, then p = 1 - x.
struct LineGrid {
  explicit LineGrid(double bandwidth);

  Index count() const { return 2 * half; }
  Index cell(double x, bool upper) const {
    const Index at = static_cast<Index>(x * inverse);
    const Index below = at == 0 ? (x < 0.25 * width ? 0 : 1) : std::min(at + 1, half - 1);
    return upper ? half + below : below;
  }
  // The place of x in a cell of the first half, in [-1, 1], and x of a place.
  double place(double x, Index below) const;
  double at(double t, Index below) const;

  double width;
  double inverse;  // 1 / width, exact
  double root;     // sqrt(width)
  Index half;
};

// A row: x = min(p, 1 - p), on which side it is, its weight and r = y - p.
struct LineRow {
  LineRow() = default;
  LineRow(double q0, double q1, double weight, bool positive_)
      : upper(q1 > q0), positive(positive_), w(weight) {
    const double p0 = still_probability(q0), p1 = still_probability(q1);
    const double least = std::min(p0, p1);
    off = (std::max(p0, p1) - 1.0) + least;
    x = std::min(std::abs(off) <= kOnSimplex ? least : least / (1.0 + off), 0.5);
    r = residual_of(positive);
  }
  // y - p if the label is this one
  double residual_of(bool label) const {
    const double size = upper == label ? x : 1.0 - x;
    return label ? size : -size;
  }

  double x = 0.0;
  bool upper = false;
  bool positive = false;  // y = 1
  double w = 0.0;
  double r = 0.0;
  double off = 0.0;  // q_0 + q_1 - 1
};

class LineBlock;

class LineNodes {
 public:
  // None where the features are no functions of p of a known scale, or where nodes would hardly be
  // fewer than rows.
  static std::optional<LineNodes> of(const LineSections& sections, const Samples& samples,
                                     Parallel& parallel);

  Index count() const { return cells_.empty() ? 0 : cells_.back().end(); }
  // visit(begin, rows) for the panels of a block of nodes, which lie close together.
  template <class Visit>
  void each_panel(Index block, Visit visit) const {
    for (Index begin = block * kBlock; begin < std::min((block + 1) * kBlock, count());
         begin += kPanel)
      visit(begin, std::min(kPanel, count() - begin));
  }
  // q of `rows` nodes from `begin` on, and r = y - p there if all labels are y.
  Matrix q(Index begin, Index rows) const;                         // (rows, 2)
  Vector residuals(Index begin, Index rows, bool positive) const;  // (rows,)

  // Fills these: sum_i w_i l_j(p_i), the same of w_i r_i and of w_i r_i^2. (count,)
  void gather(const Samples& samples, Parallel& parallel);
  Vector w, wr, wr2;

 private:
  friend class LineBlock;
  friend class LineFunctions;
  struct Cell {
    Index end() const { return first + (dense ? kNodes : static_cast<Index>(x.size())); }

    Index cell;
    Index below;            // the same in the first half
    bool dense = false;     // more than kNodes different x
    std::vector<double> x;  // else these, sorted
    Index first = 0;        // node
  };
  explicit LineNodes(const LineGrid& grid) : grid_(grid) {}
  bool find_cells(const Samples& samples, Parallel& parallel);  // false if rows are off the line

  LineGrid grid_;
  std::vector<std::int32_t> slots_;  // place of a cell in cells_; -1 for cells without rows
  std::vector<Cell> cells_;          // sorted
  std::vector<LineRow> nodes_;
};

// The rows of a task, those of a dense cell side by side.
class LineBlock {
 public:
  explicit LineBlock(const LineNodes& nodes) : nodes_(nodes), q_(kLineRows, 2) {}

  void load(const Samples& samples, Index task);

  struct Run {
    Index node;         // the first of the cell
    Index first, last;  // places
  };

  std::vector<LineRow> rows;
  std::vector<Run> runs;
  std::vector<int> row_of;   // a place -> its row; -1 fills up
  std::vector<double> t;     // of a place
  std::vector<Index> nodes;  // a row -> its node; -1 in a dense cell

 private:
  Index node_of(const LineRow& row, const LineNodes::Cell& cell) const;

  const LineNodes& nodes_;
  Matrix q_;
  std::vector<std::int32_t> slot_;
  std::vector<int> places_;
};

// Functions of p, given by their values at the nodes (count, functions), at the rows.
class LineFunctions {
 public:
  LineFunctions(const LineNodes& nodes, Matrix values);
  // out(f, i) for row i of a task. (functions, rows)
  void evaluate(const LineBlock& rows, Matrix& out) const;

 private:
  Index functions_;
  // Values at the nodes, of dense cells the coefficients of T_0, T_1, ... in their place; functions
  // are filled up to whole kTogether. (functions, nodes)
  Matrix series_;
};

}  // namespace ckce
