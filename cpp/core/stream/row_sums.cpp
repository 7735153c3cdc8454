#include "core/stream/row_sums.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/metrics/ece.hpp"

namespace ckce {

RowSums row_sums(const Samples& block, std::optional<Index> predicted, Index n_bins) {
  Parallel alone;
  RowSums sums{scores(block, alone), Matrix(n_bins, 4)};
  Samples binned = block;
  std::vector<std::int64_t> labels;
  if (predicted) {  // bins of its probability: the columns after the first two do not matter
    binned.probs.m = 2;
    for (Index i = 0; i < block.n(); ++i)
      labels.push_back(std::min<std::int64_t>(block.labels[i], 1));
    binned.labels = labels.data();
  }
  const ScalarBins bins =
      ece_scalar(binned, predicted ? Variant::kClassWise : Variant::kTopLabel, Strategy::kUniform,
                 n_bins, std::numeric_limits<double>::infinity(), alone);
  const Index group = predicted.value_or(0);
  sums.bins << bins.weight.col(group), bins.prob.col(group), bins.hits.col(group),
      bins.count.col(group);
  if (predicted) {
    sums.scores.confidence = sums.bins.col(1).sum();
    sums.scores.hits = sums.bins.col(2).sum();
  }
  return sums;
}

}  // namespace ckce
