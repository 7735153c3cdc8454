// The predicted class of a row: the first of the largest probabilities.
#pragma once

#include "types.hpp"

namespace ckce {

// confidence[i] = max_j q_ij, predicted[i] = the first j that attains it
inline void top_label(const Eigen::Ref<const Matrix>& q, double* confidence,
                      std::int64_t* predicted) {
  std::copy_n(q.col(0).data(), q.rows(), confidence);
  std::fill_n(predicted, q.rows(), 0);
  for (Index j = 1; j < q.cols(); ++j) {
    const double* column = q.col(j).data();
    for (Index i = 0; i < q.rows(); ++i) {  // no branches: the compiler vectorises it
      const bool larger = column[i] > confidence[i];
      predicted[i] = larger ? j : predicted[i];
      confidence[i] = larger ? column[i] : confidence[i];
    }
  }
}

}  // namespace ckce
