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

// What the rows of one model are multiplied by: psi_i^A = 2 [<own_h'x_i^A, r_i - own_f'x_i^A> +
// <other_h'x_i^B, other_f'x_i^B>] without its mean, and the same for B.
struct GroundFactors {
  Matrix own_h, own_f;      // for rows of the model itself     (columns, width)
  Matrix other_h, other_f;  // for rows of the other model
  Vector noisiest;          // W_M'e: e'F_M is the sum of noisiest'x_i r_i / N   (columns,)
};

// A pair by one balance, before its rows are looked at again.
struct Ground {
  double value_a = 0.0;
  double value_b = 0.0;
  double share = 0.0;  // of the predictions' variety: df(O) / max_M df(C_M), see common_ground.cpp
  GroundFactors a;
  GroundFactors b;
};

// For each of the balances. O(d^3)
std::vector<Ground> common_ground(const GroundSums& sums_a, const GroundSums& sums_b,
                                  const std::vector<Balance>& balances, Parallel& parallel);

// Debiased CKCE of both by the features that carry the norm, each with its own covariance; as a
// ground, so that one pass over the rows gives its influence, too. O(norm^3)
Ground own_ground(const GroundSums& sums_a, const GroundSums& sums_b, Index norm,
                  double regularization, Parallel& parallel);

// What the rows tell of a pair by one balance.
struct GroundSpread {
  // The sums of other rows, which add up.
  void add(const GroundSpread& other);
  // The largest |mu| of the second-order part of value_A - value_B: e'F has the covariance
  // Sigma = noise / N^2 around its mean, and its squares differ by sum_k mu_k chi_k^2 with mu the
  // eigenvalues of Sigma diag(I, -I).
  double largest(double weight) const;

  Vector influence;  // (n,), psi_i^A - psi_i^B plus a constant; rows are paired
  Matrix noise;  // sum_i w_i z_i z_i', z_i = [u_i^A r_i^A | u_i^B r_i^B] F, u_i^M = noisiest'x_i;
                 // of groups, of their sums; lower triangle   (2 width, 2 width)
};

// The second pass, for each of the grounds. The samples have equal rows, weights and groups.
// O(n d width)
std::vector<GroundSpread> ground_spread(const Features& features, const Samples& a,
                                        const Samples& b, const std::vector<Ground>& grounds,
                                        const LabelKernel& label, Parallel& parallel);

}  // namespace ckce
