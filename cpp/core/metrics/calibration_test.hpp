// Exact test of calibration, eq. (2) of the paper. Given the predictions, the labels of a
// calibrated model are draws from the rows of Q: a simple null, under which any statistic can be
// drawn. With features Phi, M = Phi'Phi + ridge I and T = Phi M^-1, all of them are linear in the
// labels before they are squared: CKCE = |T'R|_F^2, eq. (9), JKCE from |Phi'R|_F^2, and T'R is rows
// of T summed by label, minus T'Q.
#pragma once

#include <cstdint>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"

namespace ckce {

// (1 + n_resamples, 3): CKCE, debiased CKCE and unbiased JKCE of the labels (first row) and of
// labels drawn from the predictions. Weights are not read. O(n d^2 + n_resamples n d), memory
// independent of n: `table` doubles for the features of all rows, if they fit, or for the sums of
// as many resamples as do, at most kTestSets.
Matrix resample_features(const Features& features, const Samples& samples, double ridge,
                         Index n_resamples, std::uint64_t seed, Index table, Parallel& parallel);

}  // namespace ckce
