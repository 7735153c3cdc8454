// k(p, q) = exp(-|p - q|^2 / (2 bandwidth^2)), the second term of eq. (8) of the paper.
#pragma once

#include <algorithm>

#include "core/kernels/distances.hpp"
#include "core/kernels/kernel.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

class Gaussian : public Kernel {
 public:
  static constexpr const char* name = "gaussian";
  explicit Gaussian(double bandwidth) : bandwidth_(bandwidth) {}
  Line line() const override { return Line::kGaussian; }
  double bandwidth() const override { return bandwidth_; }
  double steepness() const override { return 1.0 / bandwidth_ / bandwidth_; }

  // x = (q - mean) / bandwidth: centred, because products of x then round at the scale of the
  // spread of the predictions and not at that of the simplex. Where that spans many bandwidths, x
  // itself rounds too much, u |x|: then the tiles take differences of q, which are right to u.
  void prepare(Points& points, const Vector& mean, Parallel& parallel) const override {
    points.x = Panels(points.n(), points.q.width(), Panels::Unset());
    points.half_norms = unset<Matrix>(kPanel, points.q.count());
    parallel.each_striped(points.q.count(), stripe_of(points.q.count()), [&](Index i) {
      points.x.panel(i) = (points.q.panel(i).rowwise() - mean.transpose()) / bandwidth_;
      points.x.panel(i).bottomRows(kPanel - points.x.rows(i)).setZero();  // no point lies there
      points.half_norms.col(i) = 0.5 * points.x.panel(i).rowwise().squaredNorm();
    });
    // A product of vectors of squared norm s is off by about s eps.
    points.expanded = points.half_norms.maxCoeff() <= kMostExpanded;
    if (!points.expanded) points.x = Panels();
  }

  void tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const override {
    using namespace Eigen::internal;
    const Index m = a.q.width();
    if (!a.expanded || !b.expanded) {
      const Packet scale = pset1<Packet>(-std::min(0.5 / bandwidth_ / bandwidth_, 1e300));
      return tile_of<SquaredL2>(
          a.q.panel(i).data(), b.q.panel(j).data(), m, out, [&](Index, double* k) {
            exp_of_column(k, [&](Index, const Packet& sum) { return pmul(scale, sum); });
          });
    }
    const double* a_x = a.x.panel(i).data();
    const double* b_x = b.x.panel(j).data();
    const double* a_half = a.half_norms.col(i).data();
    const double* b_half = b.half_norms.col(j).data();
    // -|x - y|^2 / 2 = <x, y> - |x|^2 / 2 - |y|^2 / 2
    const auto finish = [&](Index column, double* k) {
      const Packet b_norm = pset1<Packet>(b_half[column]);
      exp_of_column(k, [&](Index row, const Packet& dot) {
        return psub(psub(dot, ploadu<Packet>(a_half + row)), b_norm);
      });
    };
    if (m <= kFewClasses) return tile_of<Dot>(a_x, b_x, m, out, finish);
    out.setZero();
    add_product_nt(out, 1.0, a.x.panel(i), b.x.panel(j).topRows(out.cols()));
    for (Index column = 0; column < out.cols(); ++column) finish(column, out.col(column).data());
  }

 protected:
  // Expanded: x is right to 2 u |x|, which moves |x - y|^2 / 2 by 2 u (|x| + |y|)^2; <x, y>, the
  // halves and their sum are sums of m terms of at most half_norm each. Otherwise the exponent s is
  // right to (m + 8) u s, and s exp(-s) <= 1 / e.
  double exponent_error(Index m, double half_norm) const override {
    const double terms = static_cast<double>(m);
    return half_norm <= kMostExpanded ? (4.0 * terms + 26.0) * half_norm : 0.5 * (terms + 8.0);
  }

 private:
  double bandwidth_;
};

}  // namespace ckce
