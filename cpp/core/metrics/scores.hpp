// Sums of the scoring rules over samples (paper, section "Proper Scoring Rules"), in one pass.
// Dividing by the weight gives the means.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"

namespace ckce {

struct Scores {
  double weight = 0.0;      // N = sum_i w_i
  double hits = 0.0;        // sum_i w_i [the first largest probability is that of y_i]
  double confidence = 0.0;  // sum_i w_i max_j q_ij
  double brier = 0.0;       // sum_i w_i |e_{y_i} - q_i|^2
  double log_loss = 0.0;    // -sum_i w_i log q_i(y_i), infinite where a label had probability 0
  double sharpness = 0.0;   // sum_i w_i |q_i|^2
  Vector residual;          // (m,), sum_i w_i (e_{y_i} - q_i)
  Vector labels;            // (m,), sum_i w_i e_{y_i}

  void add(const Scores& other);
};

// O(n m)
Scores scores(const Samples& samples, Parallel& parallel);

}  // namespace ckce
