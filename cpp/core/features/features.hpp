// Maps phi with Phi Phi' ~ K. Rows come in blocks; Phi never exists whole.
#pragma once

#include <limits>
#include <stdexcept>

#include "../products.hpp"
#include "../types.hpp"

namespace ckce {

class Features {
 public:
  virtual ~Features() = default;
  virtual Index d() const = 0;
  // True if the first m features are q itself; then Phi'Q is a sub-block of Phi'Phi.
  virtual bool starts_with_q() const { return false; }
  // phi(i, :) = phi(q_i) for the samples begin, begin + 1, ..., whose predictions are q (rows, m).
  virtual void fill(Index begin, const In& q, MatrixRef phi) const = 0;
  // Tr K from sum w and sum w |q|^2, for maps with Phi Phi' <= K; infinity for others.
  virtual double trace(double /*weight*/, double /*sharpness*/) const {
    return std::numeric_limits<double>::infinity();
  }
  // How far rounding may move Tr K - Tr Phi Phi', with the lower triangle of Phi'diag(w)Phi.
  virtual double trace_error(const Matrix&, double /*rows*/, double /*trace*/) const { return 0.0; }
  // `fill` in float32; only streaming feature maps have it.
  virtual void fill(Index, const FloatIn&, FloatMatrixRef) const {
    throw std::logic_error("this feature map is float64 only");
  }
};

}  // namespace ckce
