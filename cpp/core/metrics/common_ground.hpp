// Common-ground CKCE: two models compared at equal predictions.
//
// CKCE of a model depends on the covariance C of its own features. Here both residual functions
// pass through one operator instead. Over features x = [phi | functions that only balance], with
//   C_M = X_M'X_M / N + eps I,  S_M = X_M'R_M / N,  P = (C_A + C_B)^-1,
//   L_A = 2 C_B P,  L_B = 2 C_A P,  O = L_A C_A - eps I,  D = (O_dd + lambda I)^-1,  W_M = D L_M,d
// the value of a model is |W_M S_M|^2 without its diagonal. As L_A C_A = L_B C_B, a residual
// function beta'x gives both models the same value, whatever they predict how often. Equal
// predictions give L = I and O = C: debiased CKCE itself.
#pragma once

#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/label_kernel.hpp"

namespace ckce {

// Of one model. Sums of two parts of the data add up.
struct GroundSums {
  explicit GroundSums(Index d, Index width)
      : xx(Matrix::Zero(d, d)), xr(Matrix::Zero(d, width)), diagonal(Matrix::Zero(d, d)) {}
  void add(const GroundSums& other);

  double weight = 0.0;  // N
  Matrix xx;            // sum_i w_i x_i x_i', lower triangle   (d, d)
  Matrix xr;            // sum_i w_i x_i r_i F                  (d, width)
  Matrix diagonal;      // sum_i w_i |r_i F|^2 x_i x_i', or by group; lower triangle
};

// O(n d^2). The bits do not depend on threads.
GroundSums ground_sums(const Features& features, const Samples& samples, const LabelKernel& label,
                       Parallel& parallel);

// One way to balance: by the first `columns` features, of which `norm` carry the norm.
struct Balance {
  Index columns;
  Index norm;
  double regularization;
  double eps;
};

struct Ground {
  double value_a = 0.0;
  double value_b = 0.0;
  double share = 0.0;  // of the predictions' variety: df(O) / max_M df(C_M), see common_ground.cpp
  Vector influence_a;  // (n,), psi_i; rows are paired. Empty unless `full`.
  Vector influence_b;
};

// For each of the balances. The samples have equal rows and weights. O(d^3); `full` takes a pass
// over the rows, O(n d width).
std::vector<Ground> common_ground(const Features& features, const Samples& a, const Samples& b,
                                  const GroundSums& sums_a, const GroundSums& sums_b,
                                  const LabelKernel& label, const std::vector<Balance>& balances,
                                  bool full, Parallel& parallel);

}  // namespace ckce
