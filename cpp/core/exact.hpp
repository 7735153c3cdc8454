// CKCE under the exact kernel: Tr V'K V with (K + ridge I) V = R (paper, eq. of CKCE-hat).
//
// By factorisation for n <= kFactorisationLimit. Above, by conjugate gradients: the ridge
// c = n^(3/4) keeps cond(K + cI) near 10, and a pivoted-Cholesky preconditioner brings it near 1,
// so a few products with K are enough. They need O(n m) memory.
#pragma once

#include "kernels/kernel.hpp"
#include "parallel.hpp"
#include "residuals.hpp"
#include "types.hpp"

namespace ckce {

constexpr Index kFactorisationLimit = 2000;

// tol bounds the relative error of the value. O(n^3) by factorisation, O(n^2 m) per iteration.
Solution solve_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                     double ridge, double tol, bool full, bool iterate, Parallel& parallel);

}  // namespace ckce
