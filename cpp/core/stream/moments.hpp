// Phi'Phi and Phi'R, all that eq. (9) of the paper needs of the samples: sums over rows,
// independent of n. Adding two states merges the data; the regulariser enters only when a state is
// solved.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/block.hpp"
#include "core/features/features.hpp"
#include "core/kernels/label_kernel.hpp"

namespace ckce {

// kMixed: products within a block in float32, sums over blocks and all that follows in float64.
enum class Precision { kFloat64, kMixed };

// The sums over the rows of one task, before they join the moments.
template <class Scalar>
struct PartialMoments {
  PartialMoments(Index d, Index m);
  void clear();
  // Adds a block, whose q() is R by now unless `scattered`. Leaves w_i phi_i in place of phi_i.
  void add(Block<Scalar>& block, bool scattered);

  Eigen::MatrixX<Scalar> phi_phi;
  Eigen::MatrixX<Scalar> labels_phi;
};

struct Moments {
  explicit Moments(const Features& features);
  Moments(const Features& features, bool scattered);

  // Adds the samples; `diagonal` only if the label kernel is given. O(n d^2), half of a full
  // product. Blocks of rows are summed on their own and added in order, so the bits depend on
  // neither threads nor layout.
  void add(const Features& features, const Samples& samples, const LabelKernel* label,
           Precision precision, Parallel& parallel);
  void add(const Moments& other);
  template <class Scalar>
  void add(const PartialMoments<Scalar>& part);  // matrices only

  // Phi'diag(w)R (d, m)
  Matrix phi_r() const;

  bool scattered;         // the state holds Phi'Y, because Phi'Q is a sub-block of Phi'Phi
  double weight = 0.0;    // N = sum_i w_i
  double diagonal = 0.0;  // sum_i w_i |phi_i|^2 |r_i F|^2
  Matrix phi_phi;         // Phi'diag(w)Phi (d, d), lower triangle
  Matrix labels_phi;      // Y'diag(w)Phi if scattered, else R'diag(w)Phi (m, d)

 private:
  template <class Scalar>
  void add_in(const Features& features, const Samples& samples, const LabelKernel* label,
              Parallel& parallel);
};

// sum_i w_i |phi_i|^2 |r_i F|^2 from the norms |r_i F|^2 of a block
double diagonal_of(Block<double>& block, const Vector& norms);

}  // namespace ckce
