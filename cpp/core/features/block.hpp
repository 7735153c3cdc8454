// A block of rows: Q, then R in its place, and Phi. The one place where they are loaded together.
#pragma once

#include <algorithm>

#include "core/base/memory.hpp"
#include "core/base/residuals.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/features/features.hpp"

namespace ckce {

template <class Scalar>
class Block {
 public:
  using MatrixS = Eigen::MatrixX<Scalar>;

  explicit Block(const Features& features, Index capacity = kBlock)
      : features_(features),
        capacity_(capacity),
        q_(unset<MatrixS>(capacity + kPadding, features.m())),
        phi_(unset<MatrixS>(capacity + kPadding, features.d())) {}

  // Doubles of one.
  static Index size(const Features& features) {
    return (kBlock + kPadding) * (features.m() + features.d());
  }

  // As many rows from `first` on as there are and fit.
  void load(const Samples& samples, Index first) {
    begin = first;
    rows = std::min(capacity_, samples.n() - begin);
    labels = samples.labels + begin;
    weighted = samples.weights != nullptr;
    weights = weights_of(samples, begin, rows);
    samples.probs.load(begin, rows, q());
    features_.fill(begin, q(), phi());
  }
  void turn_into_residuals() { residuals_in_place<Scalar>(labels, q()); }

  Eigen::Ref<MatrixS> q() { return q_.topRows(rows); }      // (rows, m)
  Eigen::Ref<MatrixS> phi() { return phi_.topRows(rows); }  // (rows, d)

  Index begin = 0;
  Index rows = 0;
  const std::int64_t* labels = nullptr;
  bool weighted = false;
  Vector weights;

 private:
  const Features& features_;
  Index capacity_;
  MatrixS q_;
  MatrixS phi_;
};

}  // namespace ckce
