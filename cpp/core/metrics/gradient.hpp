// d CKCE / d Q: how the value changes with every prediction. Bandwidth, ridge, weights, frequencies
// and landmarks are held fixed.
//
// CKCE = Tr A R L R', A = W K W, depends on Q through R, whose rows are e_y - q, and through K.
// With V = W R F and U = W K V, L = F F', the gradients in R F and in K are
//   Rbar = 2 U          Kbar = V V' - U V' - V U'
// and Qbar = -Rbar F' + what Kbar pulls back through the kernel. The debiased value is without the
// diagonal of A, sum_i A_ii |r_i F|^2: B = R L R' - diag(|r_i F|^2) takes the place of R L R', and
//   Rbar = 2 (U - diag(A) R F)          Kbar = W B W - A B W - W B A
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/ckce.hpp"

namespace ckce {

// Which value, and whether the gradient goes through K; without, Kbar is taken as 0.
struct Sides {
  bool debias;
  bool through_kernel;
};

struct Gradient {
  double value = 0.0;  // CKCE, or the debiased value
  Matrix probs;        // (n, m), d value / d Q
};

// By factorisation, with Kbar as a matrix: O(n^2 (n + m)), memory up to 6 n^2. By iteration from V
// and U: O(n^2 m), O(n m) memory; the debias term then comes from a factor of low rank, as in
// ckce_exact, and does not go through the kernel. tol bounds what the iteration leaves of its
// systems, as a share of their right-hand sides.
Gradient gradient_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                        double ridge, double tol, Solver solver, Sides sides, Parallel& parallel);

// O(n d^2 + d^3); with fewer rows than features by n unknowns, O(n^2 (n + d)).
Gradient gradient_features(const Features& features, const Samples& samples,
                           const LabelKernel& label, double ridge, Sides sides, Parallel& parallel);

}  // namespace ckce
