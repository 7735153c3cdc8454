// r_i = e_{y_i} - q_i. The labels enter eq. (7) of the paper only through these rows: its bracket
// is R R', so neither the one-hot matrix nor M_Z is built; M_Z *is* Q.
#pragma once

#include <cstdint>

#include "core/base/types.hpp"

namespace ckce {

// Turns a block of Q into the same rows of R, in place.
template <class Scalar>
void residuals_in_place(const std::int64_t* labels, Eigen::Ref<Eigen::MatrixX<Scalar>> q) {
  q = -q;
  for (Index i = 0; i < q.rows(); ++i) q(i, labels[i]) += Scalar(1);
}
inline void residuals_in_place(const std::int64_t* labels, MatrixRef q) {
  residuals_in_place<double>(labels, q);
}

}  // namespace ckce
