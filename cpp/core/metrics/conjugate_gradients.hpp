// Conjugate gradients for (K + ridge I) X = B, all columns at once (Hestenes and Stiefel 1952).
#pragma once

#include <algorithm>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {

inline double dot(const Panels& a, const Panels& b) {
  return a.data().cwiseProduct(b.data()).sum();
}

// v -> sqrt(w) K sqrt(w) v. O(n^2 m)
class WeightedGram {
 public:
  WeightedGram(const Gram& gram, const Samples& samples) : gram_(gram) {
    if (samples.weights) root_ = weights_of(samples, 0, samples.n()).cwiseSqrt();
  }

  void apply(const Panels& v, Panels& kv, Parallel& parallel) const {
    if (root_.size() == 0) return gram_product(gram_, v, kv, parallel);
    Panels scaled = v;
    scale_rows(scaled);
    gram_product(gram_, scaled, kv, parallel);
    scale_rows(kv);
  }

 private:
  void scale_rows(Panels& a) const {
    for (Index i = 0; i < a.count(); ++i)
      a.panel(i).topRows(a.rows(i)).array().colwise() *=
          root_.segment(i * kPanel, a.rows(i)).array();
  }

  Gram gram_;
  Vector root_;
};

// Stops when is_done(state). (n, width)
struct ConjugateGradients {
  Panels x;
  Panels kx;    // K X, summed along the way: B - rest - ridge X would cancel
  Panels rest;  // B - (K + ridge I) X
  Index iterations = 0;
  bool done = false;

  template <class IsDone>
  ConjugateGradients(const WeightedGram& gram, const Preconditioner& preconditioner,
                     const Panels& b, double ridge, Parallel& parallel, IsDone is_done)
      : x(b.n(), b.width()), kx(b.n(), b.width()), rest(b) {
    constexpr Index kMostIterations = 1000;
    Panels z(b.n(), b.width(), Panels::Unset());
    preconditioner.apply(rest, z, parallel);
    Panels p = z;
    Panels kp(b.n(), b.width(), Panels::Unset());
    double rest_z = dot(rest, z);
    done = is_done(*this);
    while (!done && iterations < kMostIterations) {
      gram.apply(p, kp, parallel);
      const double step = rest_z / (dot(p, kp) + ridge * p.data().squaredNorm());
      x.data() += step * p.data();
      kx.data() += step * kp.data();
      rest.data() -= step * (kp.data() + ridge * p.data());
      ++iterations;
      done = is_done(*this);
      if (done) break;
      preconditioner.apply(rest, z, parallel);
      const double next = dot(rest, z);
      p.data() = z.data() + (next / rest_z) * p.data();
      rest_z = next;
    }
  }
};

}  // namespace ckce
