// A panel of rows, and what one look at each of them tells.
#pragma once

#include <algorithm>

#include "types.hpp"

namespace ckce {

// All kPanel rows are computed, whatever the rows past the end of the data hold: a fixed count of
// them is what the compiler vectorises well.
class RowPanel {
 public:
  explicit RowPanel(Index m) : q(Matrix::Zero(kPanel, m)) {}

  // Strip by strip: memory delivers the next rows while these are looked at.
  void load(const Probs& probs, Index begin, Index rows) {
    const Index strip =
        q.cols() < 8 ? 4 * kStrip : kStrip;  // a kB or two, if there are few columns
    for (Index i = 0; i < rows; i += strip) {
      const Index count = std::min(strip, rows - i);
      probs.load(begin + i, count, q.middleRows(i, count));
      for (Index k = i; k < i + strip; k += kWidth) look(k);
    }
  }

  Matrix q;                               // (kPanel, m)
  alignas(64) double confidence[kPanel];  // max_j q_ij
  alignas(64) double predicted[kPanel];   // the first j that attains it
  alignas(64) double sum[kPanel];         // not finite if an entry is not
  alignas(64) double smallest[kPanel];

 private:
  static constexpr Index kStrip = 16;
#if defined(__GNUC__)  // Eigen's select moves masks through memory
  static constexpr Index kWidth = Eigen::internal::packet_traits<double>::size;
  typedef double Rows __attribute__((vector_size(8 * kWidth)));
#else
  static constexpr Index kWidth = 1;
  using Rows = double;
#endif
  static_assert(kPanel % (4 * kStrip) == 0 && kStrip % kWidth == 0,
                "whole strips of whole vectors");

  void look(Index i) {
    Rows largest;
    std::memcpy(&largest, q.data() + i, sizeof(Rows));
    Rows first{};
    Rows total = largest;
    Rows least = largest;
    for (Index j = 1; j < q.cols(); ++j) {
      Rows column;
      std::memcpy(&column, q.data() + j * kPanel + i, sizeof(Rows));
      first = select(column > largest, Rows{} + static_cast<double>(j), first);
      largest = select(column > largest, column, largest);
      least = select(column < least, column, least);
      total += column;
    }
    std::memcpy(confidence + i, &largest, sizeof(Rows));
    std::memcpy(predicted + i, &first, sizeof(Rows));
    std::memcpy(sum + i, &total, sizeof(Rows));
    std::memcpy(smallest + i, &least, sizeof(Rows));
  }
  template <class Mask>
  static Rows select(Mask mask, Rows yes, Rows no) {
    return mask ? yes : no;
  }
};

}  // namespace ckce
