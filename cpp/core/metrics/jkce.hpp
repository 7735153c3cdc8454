// JKCE, eq. (11) of the paper: MMD^2, eq. (3), between P(Y, Q) and P(Z, Q) under k x l. It is the
// mean of h_ij = k(q_i, q_j) <r_i F, r_j F>, because the labels enter through R only.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"

namespace ckce {

// JKCE is (off_diagonal + diagonal) / N^2 (biased) or off_diagonal / (N (N - 1)) (unbiased). Of
// samples in groups, pairs of one group are in the place of the diagonal, rows are sums over all
// other groups, and unbiased is off_diagonal / (N^2 - sum_g N_g^2).
struct JkceSums {
  double off_diagonal = 0.0;  // over pairs of different copies: sum_ij w_i w_j h_ij - diagonal
  double diagonal = 0.0;      // sum_i w_i h_ii
  // Where `full`: sum_j w_j h_ij - h_ii, the sum over all other copies for one copy of sample i,
  // from which the standard error of the U-statistic comes. (n,)
  Vector rows;
};

// O(n^2 m) time, O(n m) memory.
JkceSums jkce_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    bool full, Parallel& parallel);
// For a Gram matrix (n, n) that only Python could compute.
JkceSums jkce_gram(const In& gram, const Samples& samples, const LabelKernel& label, bool full);
// |Phi'R F|_F^2 in place of the double sum. O(n d^2)
JkceSums jkce_features(const Features& features, const Samples& samples, const LabelKernel& label,
                       bool full, Parallel& parallel);
// The unbiased JKCE of each of the floor(n / block_size) blocks of consecutive rows; weights are
// not read. O(n block_size m)
Vector jkce_blocks(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                   Index block_size, Parallel& parallel);

}  // namespace ckce
