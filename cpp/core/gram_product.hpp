// V -> K V with tiles of K computed as they are needed: O(n^2 m) time, O(n m) memory.
#pragma once

#include "kernels/kernel.hpp"
#include "parallel.hpp"
#include "types.hpp"

namespace ckce {

// out = K V (n, width). Each tile of the lower triangle serves both sides of the diagonal.
void gram_product(const Kernel& kernel, const Points& points, const Panels& v, Panels& out,
                  Parallel& parallel);

// The sum over i != j of k(q_i, q_j) <r_i, r_j>. O(n^2 m)
double off_diagonal_form(const Kernel& kernel, const Points& points, const Panels& r,
                         Parallel& parallel);

// K (n, n). O(n^2 m)
Matrix whole_gram(const Kernel& kernel, const Points& points, Parallel& parallel);

}  // namespace ckce
