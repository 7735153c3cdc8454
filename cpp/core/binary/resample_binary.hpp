// The exact test of calibration (calibration_test.hpp) for two classes. All labels share one
// factorisation; b = Q'r of drawn labels comes from sums of a_i over the rows with y_i = 1, and
// with r^2 = y (1 - 2p) + p^2 so do the diagonals. CKCE = 2 V'K~ V, V = W b, and JKCE from 2 b'K~
// b.
#pragma once

#include <cstdint>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"
#include "core/binary/grid.hpp"

namespace ckce {

// (1 + n_resamples, 3): CKCE, debiased CKCE and unbiased JKCE of the labels (first row) and of
// labels drawn from the predictions, by the random numbers of `resample_features`. Weights are not
// read. O(n_resamples (n nodes + cells nodes^2)); `table` doubles for the sums of as many resamples
// as fit, at most kTestSets.
Matrix resample_binary(const Grid& grid, const Samples& samples, bool linear, double ridge,
                       Index n_resamples, std::uint64_t seed, Index table, Parallel& parallel);

}  // namespace ckce
