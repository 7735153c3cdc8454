// Sums over the rows of a block that have nothing to do with kernels: scores, and bins of the
// confidence in the predicted class.
#pragma once

#include <optional>

#include "core/base/samples.hpp"
#include "core/metrics/scores.hpp"

namespace ckce {

struct RowSums {
  Scores scores;
  Matrix bins;  // (B, 4): weight, sum w confidence, sum w [right], rows of uniform bins
};

// The class of column `predicted`, 0 or 1, is the predicted one, as where predictions were reduced
// to it; without, the first maximum is.
RowSums row_sums(const Samples& block, std::optional<Index> predicted, Index n_bins);

}  // namespace ckce
