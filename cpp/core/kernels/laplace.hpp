// k(p, q) = exp(-|p - q|_1 / bandwidth)
#pragma once

#include "distances.hpp"
#include "kernel.hpp"

namespace ckce {

class Laplace : public Kernel {
 public:
  static constexpr const char* name = "laplace";
  explicit Laplace(double bandwidth) : scale_(-1.0 / bandwidth) {}

  void tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const override {
    distance_tile<L1>(a.q.panel(i).data(), b.q.panel(j).data(), a.q.width(), out,
                      [this](const Lanes& d) -> Lanes { return (scale_ * d).exp(); });
  }

 private:
  double scale_;
};

}  // namespace ckce
