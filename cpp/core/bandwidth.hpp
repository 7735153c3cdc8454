// The median heuristic: gamma of eq. (8) of the paper is the median of the distances |q_i - q_j|,
// i < j.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"

namespace ckce {

enum class Norm { kL2, kL1 };

// Up to here all pairs count; above, those of this many seeded rows.
constexpr Index kMedianRows = 2000;

enum class Counted {
  kAll,    // every pair, as in the paper
  kApart,  // pairs whose distance is more than kApartShare of the largest one
};
constexpr double kApartShare = 1e-6;

struct MedianDistance {
  double value;    // 0 if all distances are 0 (or there is no pair)
  double largest;  // of all pairs
};

// `groups` are calibration sets of the same m whose within-set pairs are pooled. Weights count as
// copies: a pair of different rows w_i w_j times, a row with itself w_i (w_i - 1) / 2 times.
// O(kMedianRows^2 m) per group
MedianDistance median_distance(const std::vector<Samples>& groups, Norm norm, Counted counted,
                               std::uint64_t seed, Parallel& parallel);

// The same for the m one-vs-rest problems (1 - q_j, q_j) pooled. Their distances are differences of
// one column, so pairs are counted in sorted columns and never stored. O(m kMedianRows)
MedianDistance class_wise_median_distance(const Samples& samples, Norm norm, Counted counted,
                                          std::uint64_t seed, Parallel& parallel);

}  // namespace ckce
