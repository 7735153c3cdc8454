// Conjugate gradients for (K + ridge I) X = B, all columns at once (Hestenes and Stiefel 1952).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/base/rounding.hpp"
#include "core/base/samples.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {

constexpr double kFloatUnit = 0.5 * std::numeric_limits<float>::epsilon();

inline double dot(const Panels& a, const Panels& b) {
  return a.data().cwiseProduct(b.data()).sum();
}

// v -> sqrt(w) K sqrt(w) v. O(n^2 m)
class WeightedGram {
 public:
  WeightedGram(const Gram& gram, const Samples& samples, Parallel& parallel) : gram_(gram) {
    const Vector w = weights_of(samples, 0, samples.n());
    if (samples.weights) root_ = w.cwiseSqrt();
    norm_ = w.dot(gram.kernel.diagonal(gram.points, parallel));
    const double depth = depth_in_panels(2 * gram.n()) + static_cast<double>(samples.m());
    error_ = depth * kUnit * norm_ + gram.kernel.entry_error(gram.points) * w.sum();
    // A tile rounds once, and its share of a sum kPanel times; three more for what underflows.
    float_error_ = (static_cast<double>(kPanel) + 4.0) * kFloatUnit * norm_ + error_;
  }

  // |sqrt(w) K sqrt(w)| <= its trace, and how far rounding may move a product with v, at most, as a
  // multiple of |v|: K has no negative entries, so the same norm bounds K |v|.
  double norm() const { return norm_; }
  double error() const { return error_; }
  double float_error() const { return float_error_; }  // the same of s in apply_both

  void apply(const Panels& v, Panels& kv, Parallel& parallel) const {
    apply(v, kv, parallel, nullptr);
  }

  // Also ks = K s for s that to_float and from_float have rounded, on the same tiles in float32.
  void apply(const Panels& v, Panels& kv, const FloatPanels& s, Panels& ks,
             Parallel& parallel) const {
    const Beside beside{s, ks};
    apply(v, kv, parallel, &beside);
    scale_rows(ks);
  }

  // scale sqrt(w) s in float32, scale a power of 2 that brings it near 1; and back to s.
  FloatPanels to_float(const Panels& s, double& scale) const {
    double largest = 0.0;
    for (Index i = 0; i < s.count(); ++i)
      largest = std::max(largest, rows_times(s, i, 1.0).cwiseAbs().maxCoeff());
    scale = largest > 0.0 && std::isfinite(largest) ? std::exp2(-std::ilogb(largest)) : 1.0;
    FloatPanels rounded(s.n(), s.width());
    for (Index i = 0; i < s.count(); ++i)
      rounded.panel(i).topRows(s.rows(i)) = rows_times(s, i, scale).cast<float>();
    return rounded;
  }
  Matrix from_float(const FloatPanels& s, Index i, double scale) const {
    Matrix rows = s.panel(i).cast<double>() / scale;
    if (root_.size() > 0)
      rows.topRows(s.rows(i)).array().colwise() /= root_.segment(i * kPanel, s.rows(i)).array();
    return rows;
  }

 private:
  void apply(const Panels& v, Panels& kv, Parallel& parallel, const Beside* beside) const {
    if (root_.size() == 0) return gram_product(gram_, v, kv, parallel, beside);
    Panels scaled = v;
    scale_rows(scaled);
    gram_product(gram_, scaled, kv, parallel, beside);
    scale_rows(kv);
  }

  // scale sqrt(w) s, rows of panel i
  Matrix rows_times(const Panels& s, Index i, double scale) const {
    Matrix rows = scale * s.panel(i).topRows(s.rows(i));
    if (root_.size() > 0) rows.array().colwise() *= root_.segment(i * kPanel, s.rows(i)).array();
    return rows;
  }

  void scale_rows(Panels& a) const {
    if (root_.size() == 0) return;
    for (Index i = 0; i < a.count(); ++i)
      a.panel(i).topRows(a.rows(i)).array().colwise() *=
          root_.segment(i * kPanel, a.rows(i)).array();
  }

  Gram gram_;
  Vector root_;
  double norm_;
  double error_;
  double float_error_;
};

constexpr Index kMostProducts = 1000;
constexpr Index kFewProducts = 50;  // where a factorisation can take over

// Stops when is_done(state), or after `most` products. (n, width)
struct ConjugateGradients {
  Panels x;
  Panels kx;    // K X, summed along the way: B - rest - ridge X would cancel
  Panels rest;  // B - (K + ridge I) X
  // How far rounding may have moved `kx` from K X and `rest` from B - (K + ridge I) X, in norm:
  // each step adds what its product and its four updates round.
  double kx_error = 0.0;
  double rest_error = 0.0;
  Index iterations = 0;
  bool done = false;

  template <class IsDone>
  ConjugateGradients(const WeightedGram& gram, const Preconditioner& preconditioner,
                     const Panels& b, double ridge, Parallel& parallel, IsDone is_done,
                     Index most = kMostProducts)
      : x(b.n(), b.width()), kx(b.n(), b.width()), rest(b) {
    Panels z(b.n(), b.width(), Panels::Unset());
    preconditioner.apply(rest, z, parallel);
    Panels p = z;
    Panels kp(b.n(), b.width(), Panels::Unset());
    double rest_z = dot(rest, z);
    done = is_done(*this);
    while (!done && iterations < most) {
      gram.apply(p, kp, parallel);
      const double p_square = p.data().squaredNorm();
      const double step = rest_z / (dot(p, kp) + ridge * p_square);
      x.data() += step * p.data();
      kx.data() += step * kp.data();
      rest.data() -= step * (kp.data() + ridge * p.data());
      add_errors(gram, ridge, std::abs(step) * std::sqrt(p_square));
      ++iterations;
      done = is_done(*this);
      if (done) break;
      preconditioner.apply(rest, z, parallel);
      const double next = dot(rest, z);
      p.data() = z.data() + (next / rest_z) * p.data();
      rest_z = next;
    }
  }

 private:
  // Of a step of norm |step p|: its product is off by `error`; x by u (|x| + 2 |step p|), through
  // which K X moves; kx and rest by u of what they are and of what was added to them.
  void add_errors(const WeightedGram& gram, double ridge, double moved) {
    const double product = gram.error() * moved;
    const double of_x = kUnit * (x.data().norm() + 2.0 * moved);
    const double added = gram.norm() * moved;
    kx_error += product + gram.norm() * of_x + kUnit * (kx.data().norm() + 2.0 * added);
    rest_error += product + (gram.norm() + ridge) * of_x +
                  kUnit * (rest.data().norm() + 4.0 * (added + ridge * moved));
  }
};

}  // namespace ckce
