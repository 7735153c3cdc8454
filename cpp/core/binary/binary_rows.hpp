// Rows of two classes as numbers: p = P(class 1), whether the label is 1, and the weight.
//
// A row that misses the simplex by delta = q_0 + q_1 - 1 is taken at the nearest point of it,
// p = q_1 - delta / 2; within rounding p is q_1 itself. With q = [1 - p, p] + delta / 2 the
// Gaussian exponent changes by (delta - delta')^2 / (4 bandwidth^2) and R R' by delta delta' / 2,
// both of second order; only the linear part, <q, q'> = <., .> + (delta + delta' + delta delta') /
// 2, changes in the first. On 600 problems at the default lambda the median change was 0.1 delta
// (Gaussian) and 0.2 delta (with the linear part) of value + debias term; it is larger where
// residuals are as small as delta. Certificates count it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"

namespace ckce {

constexpr double kOnSimplex = 4.0 * std::numeric_limits<double>::epsilon();

// delta, exact: the first difference is, and the sum is because it cancels.
inline double off_simplex(double q0, double q1) {
  return q1 <= 0.5 ? (q0 - 1.0) + q1 : (q1 - 1.0) + q0;
}

inline double on_simplex(double q0, double q1) {
  const double delta = off_simplex(q0, q1);
  if (std::abs(delta) <= kOnSimplex) return still_probability(q1);
  return std::clamp(still_probability(q1) - 0.5 * delta, 0.0, 1.0);
}

// One block of rows.
class BinaryRows {
 public:
  BinaryRows() : p(kBlock), y(kBlock), w(kBlock), q_(kBlock, 2) {}

  void load(const Samples& samples, Index begin_, Index rows_) {
    begin = begin_;
    rows = rows_;
    samples.probs.load(begin, rows, q_.topRows(rows));
    off = 0.0;
    for (Index i = 0; i < rows; ++i) {
      p[i] = on_simplex(q_(i, 0), q_(i, 1));
      off = std::max(off, std::abs(off_simplex(q_(i, 0), q_(i, 1))));
      y[i] = samples.labels[begin + i] == 1 ? 1.0 : 0.0;
      w[i] = samples.weight(begin + i);
    }
  }

  Index begin = 0;
  Index rows = 0;
  Vector p, y, w;    // (kBlock,)
  double off = 0.0;  // max |q_0 + q_1 - 1|

 private:
  Matrix q_;
};

// max_i |q_i0 + q_i1 - 1|. O(n)
inline double off_simplex(const Samples& samples, Parallel& parallel) {
  const Index blocks = (samples.n() + kBlock - 1) / kBlock;
  Vector off = Vector::Zero(std::max<Index>(blocks, 1));
  parallel.each(blocks, [&] {
    return [&, rows = BinaryRows()](Index block) mutable {
      rows.load(samples, block * kBlock, std::min(kBlock, samples.n() - block * kBlock));
      off[block] = rows.off;
    };
  });
  return off.maxCoeff();
}

}  // namespace ckce
