// What the estimators of CKCE share: the bound on rounding and the end of the influence.
#pragma once

#include <limits>

#include "core/base/samples.hpp"

namespace ckce {

// How far rounding may move a value: a solve loses cond(K + ridge I) <= 1 + 2 / lambda, because
// Tr K <= 2 n, and acts on terms that add up to value + debias.
inline double round_off_bound(double condition, double terms) {
  return 32.0 * std::numeric_limits<double>::epsilon() * condition * terms;
}

// Labels of a group may depend on each other: nobody knows the mean of the value.
constexpr double kNoFloor = std::numeric_limits<double>::quiet_NaN();

// 1 + 2 / lambda
inline double condition_of(double ridge, const Samples& samples) {
  const double lambda = ridge / total_weight(samples);
  return 1.0 + 2.0 / lambda;
}

// From w_i t_i to psi_i = scale (t_i - mean t), the influence of one copy of sample i.
inline void finish_influence(Vector& t, const Samples& samples, double scale) {
  const double mean = t.sum() / total_weight(samples);
  for (Index i = 0; i < t.size(); ++i) t[i] = scale * (t[i] / samples.weight(i) - mean);
}

}  // namespace ckce
