// Rows of two classes in groups: the debias term sum_g b_g'P b_g of cell_problem.hpp, where b_g are
// the residuals of a group alone, and what JKCE leaves out.
#pragma once

#include "core/base/groups.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/binary/cell_problem.hpp"
#include "core/binary/cell_sums.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/jkce.hpp"

namespace ckce {

// Without the factor l of the label kernel. O(n nodes + groups rank band)
double debias_by_group(const CellProblem& problem, const CellSums& sums, const Samples& samples,
                       Parallel& parallel);

// The sums over pairs of different groups, from those over pairs of different copies with their
// rows. Small groups by tiles of K, large ones as problems of their own in O(rows).
JkceSums leave_groups_out(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          JkceSums sums, Parallel& parallel);

}  // namespace ckce
