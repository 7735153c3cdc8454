// phi(q) = [q | cos(w_1'q) .. cos(w_D'q) | sin(w_1'q) .. sin(w_D'q)], trigonometric part / sqrt(D):
// random Fourier features (paper, section "Random Fourier Feature Implementation").
#pragma once

#include <utility>

#include "features.hpp"

namespace ckce {

class Fourier : public Features {
 public:
  // frequencies (D, m), already divided by the bandwidth
  Fourier(Matrix frequencies, bool linear_part)
      : frequencies_(std::move(frequencies)),
        float_frequencies_(frequencies_.cast<float>()),
        linear_part_(linear_part) {}

  Index d() const override {
    return 2 * frequencies_.rows() + (linear_part_ ? frequencies_.cols() : 0);
  }
  bool starts_with_q() const override { return linear_part_; }

  void fill(Index begin, const In& q, MatrixRef phi) const override;
  void fill(Index begin, const FloatIn& q, FloatMatrixRef phi) const override;

 private:
  Matrix frequencies_;
  FloatMatrix float_frequencies_;
  bool linear_part_;
};

}  // namespace ckce
