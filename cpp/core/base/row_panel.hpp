// A panel of rows, and what one look at each of them tells.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/base/memory.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"

namespace ckce {

// All kPanel rows are computed, whatever the rows past the end of the data hold: a fixed count of
// them is what the compiler vectorises well.
class RowPanel {
 public:
  explicit RowPanel(Index m) : q(Matrix::Zero(kPanel, m)) {}

  // Strip by strip: memory delivers the next rows while these are looked at.
  void load(const Probs& probs, Index begin, Index rows) {
    const Index strip =
        q.cols() < 8 ? 4 * kStripRows : kStripRows;  // a kB or two, if there are few columns
    for (Index i = 0; i < rows; i += strip) {
      const Index count = std::min(strip, rows - i);
      probs.load(begin + i, count, q.middleRows(i, count));
      for (Index k = i; k < i + strip; k += kWidth) look_across(k);
    }
  }

  // The same, but q may stay as it is: of long rows without gaps it does, in half the time.
  void look(const Probs& probs, Index begin, Index rows) {
    const bool is_float = probs.dtype == Dtype::kFloat32;
    const Index size = is_float ? 4 : 8;
    if (q.cols() < kLongRow || probs.dtype == Dtype::kFloat16 || probs.col_stride != size)
      return load(probs, begin, rows);
    for (Index i = 0; i < rows; ++i) {
      const char* row = probs.data + (begin + i) * probs.row_stride;
      if (probs.row_stride == q.cols() * size) fetch_ahead(row, probs.row_stride);
      if (is_float)
        look_along<float>(row, i);
      else
        look_along<double>(row, i);
    }
  }

  Matrix q;                               // (kPanel, m)
  alignas(64) double confidence[kPanel];  // max_j q_ij
  alignas(64) double predicted[kPanel];   // the first j that attains it
  alignas(64) double sum[kPanel];         // not finite if an entry is not
  alignas(64) double smallest[kPanel];

 private:
#if defined(__GNUC__)  // Eigen's select moves masks through memory
  static constexpr Index kWidth = Eigen::internal::packet_traits<double>::size;
  typedef double Lane __attribute__((vector_size(8 * kWidth)));
  template <class T>
  static Lane read(const char* at) {
    typedef T Stored __attribute__((vector_size(sizeof(T) * kWidth)));
    Stored stored;
    std::memcpy(&stored, at, sizeof(Stored));
    return __builtin_convertvector(stored, Lane);
  }
#else
  static constexpr Index kWidth = 1;
  using Lane = double;
  template <class T>
  static Lane read(const char* at) {
    T stored;
    std::memcpy(&stored, at, sizeof(T));
    return static_cast<Lane>(stored);
  }
#endif
  static_assert(kPanel % (4 * kStripRows) == 0 && kStripRows % kWidth == 0,
                "whole strips of whole lanes");
  static_assert(kWidth <= kLongRow, "a long row fills a lane");

  template <class Mask>
  static Lane select(Mask mask, Lane yes, Lane no) {
    return mask ? yes : no;
  }
  static Lane same(double value) { return Lane{} + value; }

  // What the entries seen so far tell, lane by lane.
  struct Sight {
    Lane largest, first, least, total;

    void compare(Lane entries, Lane columns) {
      first = select(entries > largest, columns, first);
      largest = select(entries > largest, entries, largest);
      least = select(entries < least, entries, least);
    }
  };

  // Rows i .. i + kWidth - 1 of q, a row in each lane.
  void look_across(Index i) {
    const auto column = [&](Index j) {
      return read<double>(reinterpret_cast<const char*>(q.data() + j * kPanel + i));
    };
    const Lane start = column(0);
    Sight sight{start, same(0.0), start, start};
    for (Index j = 1; j < q.cols(); ++j) {
      sight.compare(column(j), same(static_cast<double>(j)));
      sight.total += column(j);
    }
    std::memcpy(confidence + i, &sight.largest, sizeof(Lane));
    std::memcpy(predicted + i, &sight.first, sizeof(Lane));
    std::memcpy(sum + i, &sight.total, sizeof(Lane));
    std::memcpy(smallest + i, &sight.least, sizeof(Lane));
  }

  // Row i, whose entries lie at `row`, neighbours in neighbouring lanes.
  template <class T>
  void look_along(const char* row, Index i) {
    const auto entries = [&](Index j) { return read<T>(row + j * static_cast<Index>(sizeof(T))); };
    double count[kWidth];
    for (Index k = 0; k < kWidth; ++k) count[k] = static_cast<double>(k);
    Lane columns;
    std::memcpy(&columns, count, sizeof(Lane));

    const Index m = q.cols();
    const Lane start = entries(0);
    Sight sight{start, columns, start, start};
    Index j = kWidth;
    for (; j + kWidth <= m; j += kWidth) {
      sight.compare(entries(j), columns + static_cast<double>(j));
      sight.total += entries(j);
    }
    if (j < m) {  // the last entries, and some once more
      const Lane last = entries(m - kWidth);
      const Lane where = columns + static_cast<double>(m - kWidth);
      sight.compare(last, where);
      sight.total += select(where >= same(static_cast<double>(j)), last, same(0.0));
    }
    using Entries = Eigen::Array<double, kWidth, 1>;
    const auto all = [](const Lane& lane) {
      Entries values;
      std::memcpy(values.data(), &lane, sizeof(Lane));
      return values;
    };
    confidence[i] = all(sight.largest).maxCoeff();
    const Lane nowhere = same(static_cast<double>(m));
    predicted[i] =
        all(select(sight.largest == same(confidence[i]), sight.first, nowhere)).minCoeff();
    sum[i] = all(sight.total).sum();
    smallest[i] = all(sight.least).minCoeff();
  }
};

}  // namespace ckce
