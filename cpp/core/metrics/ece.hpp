// ECE_d = E d(P(Y|Q), Q), eq. (10) of the paper, by histogram regression: within a bin P(Y|Q) is
// the label frequency and Q the mean prediction.
//
// Uniform bins are [b/B, (b+1)/B), 1 in the last. Everything is sums over bins, added in row order
// of fixed blocks, so bits depend on neither threads nor layout.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/validate.hpp"

namespace ckce {

enum class Variant { kTopLabel, kClassWise };
enum class Strategy { kUniform, kQuantile };

// Distances over all bins, p_b = W_b / N the share of a bin, g_b = mean of (y - q) in it.
struct Gaps {
  double l1 = 0.0;          // sum_b p_b |g_b|_1
  double l2_squared = 0.0;  // sum_b p_b |g_b|^2
  double max = 0.0;         // max_b |g_b|_inf
  double refinement = 0.0;  // sum_b p_b v_b, v_b the variance of the label: 1 - |mean y|^2
  // sum_b p_b v_b / (W_b - 1), what chance adds to l2_squared (Kumar, Liang and Ma 2019); all of a
  // bin's p_b |g_b|^2 where W_b <= 1, because one sample tells nothing.
  double debias = 0.0;

  // A bin of weight W_b of N: |W_b g_b|_1, |W_b g_b|^2, |W_b g_b|_inf and v_b.
  void add_bin(double total, double weight, double gap_l1, double gap_squared, double gap_max,
               double variance);
  void add(const Gaps& other);
};

// Bins of a scalar: the confidence in the predicted class, or each class's probability.
struct ScalarBins {
  Matrix edges;               // (B + 1, groups), from 0 to 1; a quantile bin may be empty
  Matrix weight, prob, hits;  // (B, groups): sum w, sum w p, sum w [it happened]
  Matrix count;               // (B, groups): rows
  std::vector<Gaps> gaps;     // (groups,)
  Report report;              // what the pass found wrong; nothing else means anything then
};

// One group for kTopLabel, m for kClassWise. Quantile bins: a probability p falls into bin
// floor(B F / N), F the weight of the rows with smaller ones, so that ties stay together.
// Uniform bins need only one look at each row, so this pass is the door as well: rows that are no
// probabilities within `sum_tolerance` end up in the report. Quantile bins need checked samples.
// O(n m), quantile O(n m log n) with O(n) memory per thread
ScalarBins ece_scalar(const Samples& samples, Variant variant, Strategy strategy, Index n_bins,
                      double sum_tolerance, Parallel& parallel);

// Bins of all m coordinates; only those that hold a sample exist.
struct SimplexBins {
  std::vector<std::int64_t> counts;  // rows of each occupied bin, in order of appearance
  Gaps gaps;
};

// O(n m) time; memory O(1) for a bin with one sample, O(m) for one with more.
SimplexBins ece_simplex(const Samples& samples, Index n_bins, Parallel& parallel);

}  // namespace ckce
