// The witness of CKCE: F(q) = sum_i v_i k(q_i, q), V = (K + ridge I)^-1 R, the difference of the
// two conditional mean operators of eq. (6) of the paper at q. |F|^2 in the kernel's norm is CKCE.
// It estimates E[e_Y - q | q], shrunk by the ridge.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"
#include "core/metrics/ckce.hpp"

namespace ckce {

// X = (Phi'Phi + ridge I)^-1 Phi'R, F(q) = phi(q) X. (d, m)   O(n d^2 + d^3)
Matrix witness_features(const Features& features, const Samples& samples, double ridge,
                        Parallel& parallel);
// F at the sample's rows, each without (one copy of) itself: (F_i - h_i r_i) / (1 - h_i),
// h_i = min(w_i, 1) phi_i'(Phi'Phi + ridge I)^-1 phi_i. (n, m)
Matrix own_witness_features(const Features& features, const Samples& samples, double ridge,
                            Parallel& parallel);

// V. (n, m)   O(n^3) by factorisation, O(n^2 m) for each iteration
Matrix witness_exact(const Kernel& kernel, const Samples& samples, double ridge, Solver solver,
                     Parallel& parallel);
// As above, h_i = (1 - ridge W_ii / w_i) / max(w_i, 1). O(n^3)
Matrix own_witness_exact(const Kernel& kernel, const Samples& samples, double ridge,
                         Parallel& parallel);

// F(q) = sum_i v_i k(p_i, q). (rows of `at`, columns of v)   O(n rows m)
Matrix kernel_sums(const Kernel& kernel, const Probs& at, const Probs& points, const Matrix& v,
                   Parallel& parallel);

}  // namespace ckce
