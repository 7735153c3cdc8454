// The bins [b/B, (b+1)/B) of a probability, with the edges rounded to the nearest double; 1 is in
// the last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/types.hpp"

namespace ckce {

class UniformBins {
 public:
  explicit UniformBins(Index n_bins) : size_(static_cast<double>(n_bins)), edges_(n_bins + 1) {
    for (Index b = 1; b < n_bins; ++b) edges_[b] = static_cast<double>(b) / size_;
    edges_[0] = -std::numeric_limits<double>::infinity();
    edges_[n_bins] = std::numeric_limits<double>::quiet_NaN();  // nothing compares as beyond it
  }
  Index operator()(double p) const {
    const auto b = static_cast<Index>(scaled(p));
    return b + (p >= edges_[b + 1]) - (p < edges_[b]);  // the product may round across an edge
  }
  // The same of many; the edges need only be looked up where one is near.
  void operator()(const double* p, Index rows, std::int32_t* at) const {
    int near = 0;
    for (Index i = 0; i < rows; ++i) {
      const double x = scaled(p[i]);
      at[i] = static_cast<std::int32_t>(x);
      const double above = x - static_cast<double>(at[i]);
      near |= static_cast<int>(above < kNear) | static_cast<int>(above > 1.0 - kNear);
    }
    if (!near) return;
    for (Index i = 0; i < rows; ++i) at[i] = static_cast<std::int32_t>((*this)(p[i]));
  }

 private:
  static constexpr double kNear = 1e-9;  // above the round-off of 100,000 bins

  // Whatever p is has a bin, also NaN: the array may have changed since it was checked. 0 and 1
  // are the commonest, and no edges.
  double scaled(double p) const { return std::min(std::max(0.5, p * size_), size_ - 0.5); }

  double size_;
  Vector edges_;
};

}  // namespace ckce
