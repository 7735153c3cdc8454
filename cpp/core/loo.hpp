// Leave-one-out error of the regression of r_i on q_i that CKCE rests on, in closed form: with M =
// Phi'Phi + ridge I, h_i = phi_i M^-1 phi_i' and e_i = r_i - phi_i M^-1 Phi'R, the error of the
// sample left out is e_i / (1 - h_i).
#pragma once

#include <cstdint>

#include "features/cholesky.hpp"
#include "features/features.hpp"
#include "kernels/kernel.hpp"
#include "parallel.hpp"
#include "residuals.hpp"

namespace ckce {

// The mean of |e_i F|^2 / (1 - h_i)^2 for each ridge; a row of weight w is w samples, of which one
// is left out. O(n d (d + m)) for each ridge
Vector loo_features(const Features& features, const Samples& samples, const LabelKernel& label,
                    const Vector& ridges, Parallel& parallel);

// The same with an incomplete Cholesky factor of K.
Vector loo_cholesky(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    Index rank, double tol, std::uint64_t seed, const Vector& ridges,
                    Parallel& parallel);

}  // namespace ckce
