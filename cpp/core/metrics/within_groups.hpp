// What pairs of rows of the same group add: the debias term of CKCE, and what unbiased JKCE leaves
// out. Labels of one group may depend on each other given the predictions, so that E r_i r_j' is
// not 0 for any of these pairs. A row of weight w is w copies of it in its group.
#pragma once

#include "core/base/groups.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {

// sum_g |M^-1 Phi_g'R_g F|_F^2, M = Phi'Phi + ridge I. O(n d^2)
double debias_by_group(const Features& features, const Samples& samples, const LabelKernel& label,
                       const RidgeSolver& solver, Parallel& parallel);
// sum_g Tr V_g'K V_g, V_g = W E_g R_g with the rows E_g of the unit matrix; r is R F. O(n^3)
double debias_by_group(const Matrix& gram, const Groups& groups, const Matrix& r,
                       const RidgeSolver& solver, Parallel& parallel);

// sum over j in the group of i of w_j k(q_i, q_j) <r_i F, r_j F>, its own copies among them. (n,)
// O(sum_g n_g^2 m)
Vector within_groups(const Gram& gram, const Samples& samples, const LabelKernel& label,
                     Parallel& parallel);
// gram is K (n, n), r is R F.
Vector within_groups(const In& gram, const Samples& samples, const Matrix& r);
// O(n d m)
Vector within_groups(const Features& features, const Samples& samples, const LabelKernel& label,
                     Parallel& parallel);

}  // namespace ckce
