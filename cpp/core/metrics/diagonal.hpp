// The diagonal of A = W K W, which the debiased value leaves out, without n solves.
//
// With the factor of a preconditioner, K = G G' + E, the diagonal of A is that of A_0, W_0 and A_0
// those of G G', and of what E changes:
//   C = W_0 E W_0 - A_0 E W_0 - W_0 E A_0 to first order, the rest of second order in |E| / ridge.
// H = G G'W_0 has W_0 = (I - H) / ridge and A_0 = H W_0, and only its large eigenvalues count
// beside E: H is taken in a small space that is near to theirs, and C takes one product with K.
#pragma once

#include "core/metrics/conjugate_gradients.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {

class FirstOrder {
 public:
  // A space of `leading` columns, or all that G spans if these are not fewer. Z (n, columns) is
  // what apply() is asked for, and may have no columns. O(n^2 (m + leading + columns))
  FirstOrder(const WeightedGram& weighted, const Preconditioner& preconditioner, Index leading,
             const Panels& z, double ridge, Parallel& parallel);

  Vector diagonal(const Vector& e_ii) const;  // C_ii (n,)
  Panels apply() const;                       // C Z

 private:
  Index k_;
  double ridge_;
  Parallel& parallel_;
  Panels b_;      // [B | Z], B a basis of the small space: H ~ B Y B', H - H^2 ~ B Y_2 B'
  Panels e_b_;    // E [B | Z]
  Matrix bb_;     // [B | Z]'[B | Z]
  Matrix b_e_b_;  // [B | Z]'E [B | Z]
  Matrix y_;
  Matrix y_2_;
};

// A_ii (n,) from the factor of the preconditioner, which gets columns until the terms sum_i A_ii
// norms_i change by less than 1e-3 of their sum.
Vector diagonal_by_factor(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                          const Vector& norms, double ridge, Preconditioner& preconditioner,
                          Parallel& parallel);

}  // namespace ckce
