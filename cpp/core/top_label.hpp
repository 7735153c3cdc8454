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
    for (Index i = 0; i < kPanel; i += Lanes::SizeAtCompileTime) {
      Lanes largest = Eigen::Map<const Lanes>(q + i);
      Lanes first = Lanes::Zero();
      for (Index j = 1; j < m; ++j) {
        const Lanes column = Eigen::Map<const Lanes>(q + j * kPanel + i);
        first = (column > largest).select(static_cast<double>(j), first);
        largest = largest.max(column);
      }
      Eigen::Map<Lanes>(confidence + i) = largest;
      Eigen::Map<Lanes>(predicted + i) = first;
    }
  }
};

}  // namespace ckce
