// CKCE and JKCE of two classes under the Laplace kernel: exact, O(n log n) to sort, then O(n).
//
// |q - q'|_1 = 2 |p - p'|, so k = exp(-2 |p - p'| / bandwidth) is the covariance of a Markov chain
// over sorted p, x' = phi x + sqrt(1 - phi^2) noise, phi = exp(-2 (p' - p) / bandwidth). Kernel
// ridge regression is its smoother. What rows on the left say about x is an information I and a
// vector h; point d, with weight w = sum w_i and B = sum w_i r_i, adds w / c and B / c; then
//
//   J = I + w / c,   I' = phi^2 J / (1 + (1 - phi^2) J),   h' = phi (h + B / c) / (1 + (1 - phi^2)
//   J)
//
// and the same from the right. All terms are positive: nothing cancels, whatever the spacing. With
// v = 1 / (1 + I_left + I_right), the variance of x given all other points,
//
//   z = A'diag(w)V = (B - w v h) / (c + w v),   h = h_left + h_right,   CKCE = l z'K z,
//   a'H a = v_dot / (c + w v)^2,   v_dot = v^2 (1 - I_dot_left - I_dot_right)
//
// where the dot is the derivative in the scale s of the kernel (W K W = -dW/ds at s = 1) and
// -I_dot' = phi^2 (-I_dot + (1 - phi^2) J^2) / (1 + (1 - phi^2) J)^2 again is positive.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/residuals.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/jkce.hpp"

namespace ckce {

// Influence, debias term and floor if `full`. Memory about 12 n doubles.
Solution ckce_laplace_line(double bandwidth, const Samples& samples, const LabelKernel& label,
                           double ridge, bool full, Parallel& parallel);

JkceSums jkce_laplace_line(double bandwidth, const Samples& samples, const LabelKernel& label,
                           bool full, Parallel& parallel);

}  // namespace ckce
