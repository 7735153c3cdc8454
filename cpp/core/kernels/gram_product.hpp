// V -> K V, K the K_QQ of eq. (7) of the paper, with tiles computed as they are needed: O(n^2 m)
// time, O(n m) memory.
#pragma once

#include "core/base/float_panels.hpp"
#include "core/base/parallel.hpp"
#include "core/kernels/kernel.hpp"

namespace ckce {

// out = K V (n, width). Each tile of the lower triangle serves both sides of the diagonal.
// `beside`: another product with the same tiles, in float32.
void gram_product(const Gram& gram, const Panels& v, Panels& out, Parallel& parallel,
                  const Beside* beside = nullptr);

// The sum over i != j of k(q_i, q_j) <r_i, r_j>. O(n^2 m)
double off_diagonal_form(const Gram& gram, const Panels& r, Parallel& parallel);

// K (n, n). O(n^2 m)
Matrix whole_gram(const Gram& gram, Parallel& parallel);

}  // namespace ckce
