// Quadratic forms of rows of two classes, known by the cells: O(nodes) for each row.
#pragma once

#include "core/base/types.hpp"
#include "core/binary/cell_problem.hpp"
#include "core/binary/cell_sums.hpp"

namespace ckce {

// h(p) = a'F'^-1 P F^-1 a of the row with prediction p, a its Chebyshev polynomials: a series of
// degree 2k - 2 in a dense cell, a number for each point elsewhere.
struct RowForms {
  explicit RowForms(const CellProblem& problem);
  // From the block P of a cell. (rank(c), rank(c))
  void set(const CellProblem& problem, const CellSums& sums, Index c, Matrix p);

  Matrix series;  // (2 nodes - 1, cells)
  Vector points;  // (rank,)
};

}  // namespace ckce
