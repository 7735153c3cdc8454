// The streaming state: sums over samples, independent of n. Adding two states merges the data; the
// regulariser enters only when a state is solved.
#pragma once

#include "features/features.hpp"
#include "parallel.hpp"
#include "residuals.hpp"
#include "types.hpp"

namespace ckce {

// kMixed: products within a block in float32, sums over blocks and all that follows in float64.
enum class Precision { kFloat64, kMixed };

struct Moments {
  Moments(const Features& features, Index m);

  // Adds the samples; `diagonal` only if the label kernel is given. O(n d^2), half of a full
  // product. Blocks of rows are summed on their own and added in order, so the bits depend on
  // neither threads nor layout.
  void add(const Features& features, const Samples& samples, const LabelKernel* label,
           Precision precision, Parallel& parallel);

  // Phi'diag(w)R (d, m)
  Matrix phi_r() const;

  bool scattered;         // the state holds Phi'Y, for Phi'Q is a sub-block of Phi'Phi
  double weight = 0.0;    // N = sum_i w_i
  double diagonal = 0.0;  // sum_i w_i |phi_i|^2 |r_i F|^2
  Matrix phi_phi;         // Phi'diag(w)Phi (d, d), lower triangle
  Matrix labels_phi;      // Y'diag(w)Phi if scattered, else R'diag(w)Phi (m, d)

 private:
  template <class Scalar>
  void add_in(const Features& features, const Samples& samples, const LabelKernel* label,
              Parallel& parallel);
};

// CKCE = |(Phi'Phi + ridge I)^-1 Phi'R F|_F^2; by the equal dual where n < d. `full` takes a second
// pass over the rows. `residual`, if given, holds E_ii = k_ii - |phi_i|^2 >= 0 and gives a
// certified bound on the distance to CKCE under K. O(n d^2 + d^3)
Solution solve_features(const Features& features, const Samples& samples, const LabelKernel& label,
                        double ridge, const Vector* residual, bool full, Precision precision,
                        Parallel& parallel);

}  // namespace ckce
