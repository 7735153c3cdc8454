// phi(q) = [q | cos(w_1'q) .. cos(w_D'q) | sin(w_1'q) .. sin(w_D'q)], trigonometric part / sqrt(D):
// the random Fourier features phi-hat above eq. (9) of the paper, with D << n of them in place of
// K.
#pragma once

#include "core/features/features.hpp"

namespace ckce {

// What stands for the trigonometric part of two classes, see fourier.cpp: (k, k) with k < D, or
// empty where there is no such thing.
Matrix chebyshev_factor(const Matrix& frequencies);

class Fourier : public Features {
 public:
  // frequencies (D, m), already divided by the bandwidth
  Fourier(Matrix frequencies, bool linear_part);
  // The same with a factor that was computed before: a state's features must not change.
  Fourier(Matrix frequencies, Matrix chebyshev, bool linear_part);

  Index m() const override { return frequencies_.cols(); }
  Index d() const override { return trigonometric_ + (linear_part_ ? frequencies_.cols() : 0); }
  bool starts_with_q() const override { return linear_part_; }

  void fill(Index begin, const In& q, MatrixRef phi) const override;
  void pull_back(const In& q, const In& phi, const In& phi_bar, MatrixRef q_bar) const override;
  Vector without(Index group, Index groups) const override;
  void fill(Index begin, const FloatIn& q, FloatMatrixRef phi) const override;

 private:
  Matrix frequencies_;
  FloatMatrix float_frequencies_;
  // Two classes: the trigonometric part is T(x) chebyshev_', x = q_2 - q_1, see fourier.cpp.
  Matrix chebyshev_;
  FloatMatrix float_chebyshev_;
  Index trigonometric_;  // 2 D, or fewer for two classes
  bool linear_part_;
};

}  // namespace ckce
