// Panels in float32, and what a product with them is: each tile's share a sum in float32, `out` the
// sum of the shares in float64.
#pragma once

#include "core/base/panels.hpp"

namespace ckce {

class FloatPanels {
 public:
  FloatPanels(Index n, Index width)
      : n_(n), width_(width), data_(FloatMatrix::Zero(kPanel, Panels::count(n) * width)) {}

  Index n() const { return n_; }
  Index width() const { return width_; }
  Index count() const { return Panels::count(n_); }
  Index rows(Index i) const { return std::min(kPanel, n_ - i * kPanel); }
  auto panel(Index i) { return data_.middleCols(i * width_, width_); }
  auto panel(Index i) const { return data_.middleCols(i * width_, width_); }

 private:
  Index n_;
  Index width_;
  FloatMatrix data_;
};

struct Beside {
  const FloatPanels& v;
  Panels& out;
};

}  // namespace ckce
