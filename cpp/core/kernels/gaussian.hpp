// k(p, q) = exp(-|p - q|^2 / (2 bandwidth^2))
#pragma once

#include "../products.hpp"
#include "distances.hpp"
#include "kernel.hpp"

namespace ckce {

class Gaussian : public Kernel {
 public:
  static constexpr const char* name = "gaussian";
  explicit Gaussian(double bandwidth) : bandwidth_(bandwidth) {}

  // x = (q - mean) / bandwidth: centred, because products of x then round at the scale of the
  // spread of the predictions and not at that of the simplex.
  void prepare(Points& points) const override {
    points.x = points.q;
    for (Index j = 0; j < points.q.width(); ++j) {
      double sum = 0.0;
      for (Index i = 0; i < points.q.count(); ++i) sum += points.q.panel(i).col(j).sum();
      const double mean = sum / static_cast<double>(points.n());
      for (Index i = 0; i < points.q.count(); ++i)
        points.x.panel(i).col(j).array() = (points.q.panel(i).col(j).array() - mean) / bandwidth_;
    }
    points.half_norms.resize(kPanel, points.q.count());
    for (Index i = 0; i < points.q.count(); ++i)
      points.half_norms.col(i) = 0.5 * points.x.panel(i).rowwise().squaredNorm();
    // A product of vectors of squared norm s is off by about s eps.
    points.expanded = points.q.width() > kSmall && points.half_norms.maxCoeff() <= 64.0;
  }

  void tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const override {
    if (!a.expanded) {
      distance_tile<SquaredL2>(a.x.panel(i).data(), b.x.panel(j).data(), a.x.width(), out,
                               [](const Lanes& d) -> Lanes { return (-0.5 * d).exp(); });
      return;
    }
    out.setZero();
    add_product_nt(out, 1.0, a.x.panel(i), b.x.panel(j).topRows(out.cols()));
    for (Index c = 0; c < out.cols(); ++c)
      out.col(c).array() =
          (out.col(c).array() - a.half_norms.col(i).array() - b.half_norms(c, j)).min(0.0).exp();
  }

 private:
  static constexpr Index kSmall = 24;  // up to here differences are as fast as a product
  double bandwidth_;
};

}  // namespace ckce
