// Symmetric matrices of which only the lower triangle is kept.
#pragma once

#include "core/base/types.hpp"

namespace ckce {

// out += a
template <class AnyMatrix>
void add_lower(Matrix& out, const AnyMatrix& a) {
  for (Index j = 0; j < a.cols(); ++j)
    out.col(j).tail(a.rows() - j) += a.col(j).tail(a.rows() - j).template cast<double>();
}

// <A, B>, A whole
inline double dot_lower(const Matrix& a, const Matrix& b) {
  double sum = 0.0;
  for (Index j = 0; j < b.cols(); ++j) {
    const Index below = b.rows() - j - 1;
    sum += a(j, j) * b(j, j) + 2.0 * a.col(j).tail(below).dot(b.col(j).tail(below));
  }
  return sum;
}

}  // namespace ckce
