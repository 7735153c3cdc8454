// How far rounding moves sums: a sum of terms t_k in floating point is off by at most (depth) u
// sum_k |t_k| to first order in u, where depth is the number of roundings that a term passes
// through (Higham 2002, section 4.2).
#pragma once

#include <algorithm>
#include <limits>

#include "core/base/sizes.hpp"

namespace ckce {

constexpr double kUnit = 0.5 * std::numeric_limits<double>::epsilon();  // u

// Roundings of a sum over n rows that is taken panel by panel, or block by block: those within one
// of them, one for each of them, and a few for what becomes of a term before and after.
inline double depth_in_panels(Index n) {
  return static_cast<double>(std::min(n, kPanel) + count_pieces(n, kPanel) + 8);
}
inline double depth_in_blocks(Index n) {
  return static_cast<double>(std::min(n, 2 * kBlock) + count_pieces(n, kBlock) + 8);
}

}  // namespace ckce
