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
    for (Index i = 0; i < kPanel; i += kWidth) {
      Rows largest = load(q + i);
      Rows first{};
      for (Index j = 1; j < m; ++j) {
        const Rows column = load(q + j * kPanel + i);
        first = select(column > largest, Rows{} + static_cast<double>(j), first);
        largest = select(column > largest, column, largest);
      }
      std::memcpy(confidence + i, &largest, sizeof(Rows));
      std::memcpy(predicted + i, &first, sizeof(Rows));
    }
  }

 private:
#if defined(__GNUC__)  // Eigen's select moves masks through memory
  static constexpr Index kWidth = Eigen::internal::packet_traits<double>::size;
  typedef double Rows __attribute__((vector_size(8 * kWidth)));
#else
  static constexpr Index kWidth = 1;
  using Rows = double;
#endif
  static Rows load(const double* at) {
    Rows rows;
    std::memcpy(&rows, at, sizeof(Rows));
    return rows;
  }
  template <class Mask>
  static Rows select(Mask mask, Rows yes, Rows no) {
    return mask ? yes : no;
  }
};

}  // namespace ckce
