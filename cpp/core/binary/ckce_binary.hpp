// CKCE of two classes under the kernels `gaussian` and `linear_gaussian`: exact, O(n).
//
// The problem is that of cell_problem.hpp, solved once: CKCE = l V'K~ V. The certificate in the
// source says how far that is from the exact kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/residuals.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/binary/cell_problem.hpp"
#include "core/binary/cell_sums.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/ckce.hpp"

namespace ckce {

// Bytes that n rows take at most, in the state and while it is solved.
struct BinaryPrice {
  double state = 0.0;
  double solve = 0.0;
  double rank = 0.0;  // of the cells, at most
};
BinaryPrice binary_price(const Grid& grid, double n, Depth depth);
// Bytes that `solve_cells` takes for these sums.
double solve_price(const CellSums& sums);

// l = [-1 1] L [-1 1]', column by column of the factor of L; their sum is l.
Vector binary_label_parts(const LabelKernel& label);

// How far l r r' is from R L R' for rows off the simplex by at most `off`: R = r [-1, 1] + O(off),
// and the value moves by 2 U'dR to first order. `u` is sum_i w_i |u_i|, or more; `n_ridge` is N /
// ridge; `value` is without l, whose own rounding is eps |F|^2.
double binary_label_error(const LabelKernel& label, double off, double u, double n_ridge,
                          double value);

struct CellSolution {
  // value, bound, per_class; debias and floor if the sums have Depth::kEstimate or more
  Solution solution;
  double influence_square = 0.0;  // sum_i w_i psi_i^2, of Depth::kStream
  // f and u = K W V as series of the cells: t_i = u(p_i) (r_i - f(p_i)) / ridge
  Matrix f, u;                      // (nodes, cells)
  std::vector<std::int64_t> cells;  // of their columns
};

// `samples` are the rows of the sums if they are in groups, for the debias term.
CellSolution solve_cells(const CellSums& sums, const LabelKernel& label, bool linear, double ridge,
                         Parallel& parallel, const Samples* samples = nullptr);

// The same from rows, with the influence of each if `full`. O(n nodes + cells nodes^3)
Solution ckce_binary(const Grid& grid, const Samples& samples, const LabelKernel& label,
                     bool linear, double ridge, bool full, Parallel& parallel);

}  // namespace ckce
