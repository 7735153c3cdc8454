// The median of the distances of the pairs of rows within several sets, each pair counted once. A
// sample of pairs brackets it; one pass over all pairs counts those below and keeps those within.
// The sample decides what is kept and never the value.
#pragma once

#include <vector>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"

namespace ckce {

struct PairMedian {
  double value;    // 0 if there is no pair
  double largest;  // of all pairs
};

// Pairs count whose distance is more than `share` of the largest one; all of them for a negative
// share. Distance is SquaredL2 or L1, and so are the value's two middle distances: `plain` is
// applied to each before their mean is taken. O(n^2 m) per set
template <class Distance>
PairMedian pair_median(const std::vector<Panels>& sets, double share, double (*plain)(double),
                       Parallel& parallel);

}  // namespace ckce
