// The predicted class of a row: the first of the largest probabilities.
#pragma once

#include "types.hpp"

namespace ckce {

// Confidences and predicted classes of a panel of rows. All kPanel rows are computed, whatever the
// rows past the end of the data hold: a fixed count of them is what the compiler vectorises well.
struct TopLabels {
  alignas(64) double confidence[kPanel];  // max_j q_ij
  alignas(64) double predicted[kPanel];   // the first j that attains it

  void find(const double* q, Index m) {
    std::copy_n(q, kPanel, confidence);
    std::fill_n(predicted, kPanel, 0.0);
    for (Index j = 1; j < m; ++j) {
      const double* column = q + j * kPanel;
      const auto label = static_cast<double>(j);
      for (Index i = 0; i < kPanel; ++i) {
        predicted[i] = column[i] > confidence[i] ? label : predicted[i];
        confidence[i] = column[i] > confidence[i] ? column[i] : confidence[i];
      }
    }
  }
};

}  // namespace ckce
