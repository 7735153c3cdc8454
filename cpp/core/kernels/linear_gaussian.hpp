// k(p, q) = <p, q> + exp(-|p - q|^2 / (2 bandwidth^2)), eq. (8) of the paper: universal,
// and its RKHS contains the linear maps q -> <v, q> that the operator of Z needs.
#pragma once

#include "core/kernels/gaussian.hpp"

namespace ckce {

class LinearGaussian : public Gaussian {
 public:
  static constexpr const char* name = "linear_gaussian";
  using Gaussian::Gaussian;
  bool has_linear_part() const override { return true; }
};

}  // namespace ckce
