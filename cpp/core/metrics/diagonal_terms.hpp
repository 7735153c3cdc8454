// The debias term sum_i A_ii |r_i|^2 and the floor, A = W K W, where K is never stored and A_ii
// would take n solves.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/conjugate_gradients.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {

// Fills debias, floor, debias_rank and debias_error. The preconditioner may get more columns.
// O(n rank^2) and a few products with K.
void add_diagonal_terms(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                        const LabelKernel& label, double ridge, Preconditioner& preconditioner,
                        Solution& solution, Parallel& parallel);

}  // namespace ckce
