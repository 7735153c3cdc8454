// An (n, width) matrix cut into panels of kPanel rows, each contiguous and column-major; the rows
// that pad the last panel are zero. Panels of any two such matrices meet in small dense products.
#pragma once

#include "core/base/memory.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"

namespace ckce {

class Panels {
 public:
  Panels() = default;
  Panels(Index n, Index width) : Panels(n, width, Unset()) { data_.setZero(); }
  struct Unset {};  // for memory that is about to be written
  Panels(Index n, Index width, Unset)
      : n_(n), width_(width), data_(unset<Matrix>(kPanel, count(n) * width)) {}

  static Index count(Index n) { return count_pieces(n, kPanel); }
  Index n() const { return n_; }
  Index width() const { return width_; }
  Index count() const { return count(n_); }
  auto panel(Index i) { return data_.middleCols(i * width_, width_); }
  auto panel(Index i) const { return data_.middleCols(i * width_, width_); }
  auto row(Index i) { return panel(i / kPanel).row(i % kPanel); }
  auto row(Index i) const { return panel(i / kPanel).row(i % kPanel); }
  // Rows of panel i that are not padding.
  Index rows(Index i) const { return std::min(kPanel, n_ - i * kPanel); }
  Matrix& data() { return data_; }
  const Matrix& data() const { return data_; }
  void zero_padding() {
    if (n_ > 0) panel(count() - 1).bottomRows(count() * kPanel - n_).setZero();
  }

 private:
  Index n_ = 0;
  Index width_ = 0;
  Matrix data_;
};

}  // namespace ckce
