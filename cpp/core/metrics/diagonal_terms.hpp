// Debias term sum_i A_ii |r_i|^2 and floor sum_i A_ii E|r_i|^2, A = W K W, where A itself would
// take n solves: from a pivoted-Cholesky factor K ~ G G', and what it misses.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/conjugate_gradients.hpp"

namespace ckce {

// Fills debias, floor, debias_rank and debias_error of `solution`. The rank doubles until what the
// factor misses is 1e-3 of the term. If 512 columns are not enough and the iteration is `easy`,
// random probes find the rest. Of samples in groups the same with the blocks of the groups, sum_g
// Tr R_g'A_gg R_g, and without a floor.
void add_diagonal_terms(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                        const LabelKernel& label, double ridge, bool easy, Solution& solution,
                        Parallel& parallel);

}  // namespace ckce
