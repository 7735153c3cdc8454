// Gaussian frequencies made orthogonal in groups of `dimension`, with independent chi lengths: each
// is still N(0, I), but together they cover directions evenly (Yu et al. 2016).
#pragma once

#include "core/samplers/gaussian.hpp"

namespace ckce {

// (count, dimension)
inline Matrix orthogonal_normals(Index count, Index dimension, SplitMix64& random) {
  Matrix z(count, dimension);
  for (Index begin = 0; begin < count; begin += dimension) {
    const Index rows = std::min(dimension, count - begin);
    Matrix basis =
        independent_uniforms(rows, dimension, random).unaryExpr(&normal_quantile).transpose();
    for (Index k = 0; k < rows; ++k) {
      for (int pass = 0; pass < 2; ++pass)  // Gram-Schmidt: twice is enough
        for (Index l = 0; l < k; ++l) basis.col(k) -= basis.col(l).dot(basis.col(k)) * basis.col(l);
      basis.col(k).normalize();
    }
    const Vector lengths =
        independent_uniforms(rows, dimension, random).unaryExpr(&normal_quantile).rowwise().norm();
    z.middleRows(begin, rows) = lengths.asDiagonal() * basis.transpose();
  }
  return z;
}

}  // namespace ckce
