// CKCE from a whole Gram matrix: V = W R, CKCE = Tr V'K V. For n up to about 2000, for the dual of
// a feature map with more features than rows, and for kernels that only Python knows.
#pragma once

#include "parallel.hpp"
#include "residuals.hpp"
#include "types.hpp"

namespace ckce {

// gram is K (n, n), unweighted. O(n^3 / 3); O(n^3) more if `full`. Memory 2 n^2.
Solution solve_gram(const Matrix& gram, const Samples& samples, const LabelKernel& label,
                    double ridge, bool full, Parallel& parallel);

}  // namespace ckce
