// k(p, q) = <p, q>, the first term of eq. (8) of the paper.
#pragma once

#include "core/kernels/kernel.hpp"

namespace ckce {

class Linear : public Kernel {
 public:
  static constexpr const char* name = "linear";
  bool has_linear_part() const override { return true; }
  bool has_own_part() const override { return false; }
  void tile(const Points&, Index, const Points&, Index, MatrixRef out) const override {
    out.setZero();
  }
};

}  // namespace ckce
