#include "core/metrics/ece.hpp"

#include <algorithm>

namespace ckce {

void Gaps::add_bin(double total, double weight, double gap_l1, double gap_squared, double gap_max,
                   double variance) {
  const double share = weight / total;
  const double squared = gap_squared / (weight * weight);
  l1 += gap_l1 / total;
  l2_squared += share * squared;
  max = std::max(max, gap_max / weight);
  refinement += share * variance;
  debias += share * (weight > 1.0 ? variance / (weight - 1.0) : squared);
}

void Gaps::add(const Gaps& other) {
  l1 += other.l1;
  l2_squared += other.l2_squared;
  max = std::max(max, other.max);
  refinement += other.refinement;
  debias += other.debias;
}

}  // namespace ckce
