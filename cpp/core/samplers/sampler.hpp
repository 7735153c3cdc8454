// Frequencies w_1, ..., w_D with E cos(w'(p - q)) = k(p, q), for bandwidth 1 (paper, section
// "Random Fourier Feature Implementation").
//
// On the simplex only the part of w orthogonal to (1, ..., 1) acts, so Gaussian frequencies are
// drawn in that (m - 1)-dimensional space (Helmert's basis): one dimension less to cover.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/types.hpp"

namespace ckce {

enum class Spectrum { kGaussian, kCauchy };  // of the Gaussian and of the Laplace kernel

// (D, m). sampler: "gaussian" (independent), "orthogonal" or "sobol".
Matrix draw_frequencies(const std::string& sampler, Spectrum spectrum, Index n_frequencies, Index m,
                        std::uint64_t seed);

}  // namespace ckce
