// Leave-one-out error of the regression of r_i on q_i that eq. (9) of the paper solves, in closed
// form: with M = Phi'Phi + ridge I, h_i = phi_i M^-1 phi_i' and e_i = r_i - phi_i M^-1 Phi'R, the
// error of the sample left out is e_i / (1 - h_i).
#pragma once

#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/label_kernel.hpp"

namespace ckce {

// The mean of |e_i F|^2 / (1 - h_i)^2 for each ridge; a row of weight w is w samples, of which one
// is left out. O(n d (d + m)) for each ridge
Vector loo_features(const Features& features, const Samples& samples, const LabelKernel& label,
                    const std::vector<double>& ridges, Parallel& parallel);

}  // namespace ckce
