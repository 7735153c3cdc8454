// k(p, q) = exp(-|p - q|_1 / bandwidth)
#pragma once

#include "core/kernels/distances.hpp"
#include "core/kernels/kernel.hpp"

namespace ckce {

class Laplace : public Kernel {
 public:
  static constexpr const char* name = "laplace";
  explicit Laplace(double bandwidth) : bandwidth_(bandwidth), scale_(-1.0 / bandwidth) {}
  Line line() const override { return Line::kLaplace; }
  double bandwidth() const override { return bandwidth_; }

  void tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const override {
    using namespace Eigen::internal;
    const Packet scale = pset1<Packet>(scale_);
    tile_of<L1>(a.q.panel(i).data(), b.q.panel(j).data(), a.q.width(), out, [&](Index, double* k) {
      exp_of_column(k, [&](Index, const Packet& sum) { return pmul(scale, sum); });
    });
  }

 protected:
  // The exponent s is right to (m + 4) u s, and s exp(-s) <= 1 / e.
  double exponent_error(Index m, double) const override {
    return 0.5 * (static_cast<double>(m) + 4.0);
  }

 private:
  double bandwidth_;
  double scale_;
};

}  // namespace ckce
