// How far E = K - Phi Phi' may be from positive semi-definite, for phi_i = L^-1 K(S, q_i) of rows
// S.
//
// In floating point L L' = K(S, S) + D and Phi L' = K(:, S) + C, with entries of C and D of at most
// delta = (2 d + 8) u max k + entry_error, however small the pivots. With a_i = L^-T phi_i the rows
// of A, (I, -A) K (I, -A)' >= 0 over all rows and S is E + H, H = A C' + C A' - A D A'. So |H_ij|
// <= theta (1 + |a_i|) (1 + |a_j|) <= sqrt(eta_i eta_j), theta = d delta, eta_i = 2 theta (1 +
// |a_i|^2).
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/rounding.hpp"
#include "core/base/types.hpp"

namespace ckce {

// sum_i w_i eta_i, from L, the lower triangle of Phi'diag(w)Phi and sum_i w_i: sum_i w_i |a_i|^2 =
// Tr L^-T Phi'diag(w)Phi L^-1. O(d^3)
double slack_of(const In& l, const Matrix& phi_phi, double weight, double entry_error,
                Parallel& parallel);

}  // namespace ckce
