// JKCE = MMD^2 between P(Y, Q) and P(Z, Q) under k x l (paper, eq. (jkce)): the mean of
// h_ij = k(q_i, q_j) <r_i F, r_j F>.
#pragma once

#include "features/features.hpp"
#include "kernels/kernel.hpp"
#include "parallel.hpp"
#include "residuals.hpp"

namespace ckce {

// JKCE is (off_diagonal + diagonal) / N^2 (biased) or off_diagonal / (N (N - 1)) (unbiased).
struct JkceSums {
  double off_diagonal;  // over pairs of different copies: sum_ij w_i w_j h_ij - diagonal
  double diagonal;      // sum_i w_i h_ii
};

// O(n^2 m) time, O(n m) memory.
JkceSums jkce_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    Parallel& parallel);
// For a Gram matrix (n, n) that only Python could compute.
JkceSums jkce_gram(const Eigen::Ref<const Matrix>& gram, const Samples& samples,
                   const LabelKernel& label);
// |Phi'R F|_F^2 in place of the double sum. O(n d^2)
JkceSums jkce_features(const Features& features, const Samples& samples, const LabelKernel& label,
                       Parallel& parallel);

}  // namespace ckce
