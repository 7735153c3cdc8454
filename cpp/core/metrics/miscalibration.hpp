// Miscalibration in units of the Brier score: theta = E|E[e_Y - q | Q]|^2, without a split of the
// rows and with a smoother that never looks at labels. The paper has no such number.
//
// Z are features in whose coordinates Z'diag(w)Z / N = diag(s); H = Z (N diag(s + lambda))^-1 Z'
// smooths; A1 = 2H - H^2 = Z diag(twice) Z', twice = (s + 2 lambda) / (N (s + lambda)^2), smooths
// twice. X are three shapes of whole vectors, see shapes(), which are fitted without penalty:
//   A = A1 x I + V G V',  V = (I - A1) X,  G = (X'V)^-1,  so that I - A >= 0 and (I - A) X = 0;
//   theta = (R'AR - sum_i r_i'A_ii r_i) / (N - df),  df = Tr A1.
// Given the predictions its mean is 0 under calibration, whatever A is. Without the diagonal it is
// |R|^2 - min_c |(I - H)(R - Xc)|^2 over N, whose derivative gives the influence.
#pragma once

#include "core/base/groups.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/metrics/shapes.hpp"

namespace ckce {

// How much of a row's neighbours to look at; nothing in it depends on labels.
struct Smoother {
  double weight = 0.0;          // N
  double regularization = 0.0;  // lambda
  double df = 0.0;              // Tr A1; of groups sum_g 1'A1_gg 1
  double null_sd = 0.0;         // at least the deviation of theta under calibration
  Matrix root;                  // z diag(twice)^(1/2) = phi root       (d, d)
  Matrix spread;                // A1's part of V: v(q) = shapes(q) - phi spread  (d, kShapes m)
  Matrix inverse;               // G                                  (kShapes, kShapes)
};

struct Miscalibration {
  double value = 0.0;
  Vector influence;     // (n,), psi_i, 0 on average
  Matrix coefficients;  // of the correction AR at any q: phi coefficients + shapes(q) fit  (d, m)
  Vector fit;           // (kShapes,)
  Smoother smoother;
};

// O(n d (d + kShapes m) + d^3)
Miscalibration miscalibration(const Features& features, const Samples& samples, Parallel& parallel);

}  // namespace ckce
