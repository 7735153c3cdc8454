// JKCE of two classes: with B = A'diag(w)r as series (cell_sums.hpp) and g = M B,
//
//   sum_ij w_i w_j h_ij = l B'g,   sum_j w_j h_ij = l r_i g(p_i),   h_ii = l k(p_i, p_i) r_i^2,
//
// l = [-1 1] L [-1 1]'. Powers of r above the second are not needed: labels are 0 or 1, so
// r^2 = (1 - 2p) r + p (1 - p).
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/residuals.hpp"
#include "core/binary/cell_sums.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/jkce.hpp"

namespace ckce {

struct CellJkce {
  JkceSums sums;             // without rows
  double rows_square = 0.0;  // sum_i w_i rows_i^2, of Depth::kStream: for the standard error
};

// O(cells nodes^2)
CellJkce jkce_cells(const CellSums& sums, const LabelKernel& label, bool linear,
                    Parallel& parallel);

// O(n nodes)
JkceSums jkce_binary(const Grid& grid, const Samples& samples, const LabelKernel& label,
                     bool linear, bool full, Parallel& parallel);

}  // namespace ckce
