// Dense products, triangular solves and eigenvectors, instantiated once: Eigen's templates take
// longer to compile than the rest of the project together.
#pragma once

#include "core/base/types.hpp"

namespace ckce {

void add_product(MatrixRef out, double scale, const In& a, const In& b);     // out += scale a b
void add_product_tn(MatrixRef out, double scale, const In& a, const In& b);  // out += scale a'b
void add_product_nt(MatrixRef out, double scale, const In& a, const In& b);  // out += scale a b'
void add_gram(MatrixRef out, const In& a);  // lower triangle of out += a'a, half the work
void add_lower_product_tn(MatrixRef out, const In& a, const In& b);  // the same of a'b
// out += a b, of a symmetric a the lower triangle
void add_symmetric_product(MatrixRef out, const In& a, const In& b);

// The same in float32, for precision="mixed".
void add_product_tn(FloatMatrixRef out, float scale, const FloatIn& a, const FloatIn& b);
void add_product_nt(FloatMatrixRef out, float scale, const FloatIn& a, const FloatIn& b);
void add_gram(FloatMatrixRef out, const FloatIn& a);

inline Matrix product(const In& a, const In& b) {
  Matrix out = Matrix::Zero(a.rows(), b.cols());
  add_product(out, 1.0, a, b);
  return out;
}

inline Matrix product_tn(const In& a, const In& b) {
  Matrix out = Matrix::Zero(a.cols(), b.cols());
  add_product_tn(out, 1.0, a, b);
  return out;
}

// For lower triangular L: b -> L^-1 b, b -> L'^-1 b, b -> b L^-1, b -> b L'^-1.
void solve_lower(const In& l, MatrixRef b);
void solve_lower_transposed(const In& l, MatrixRef b);
void solve_lower_from_right(const In& l, MatrixRef b);
void solve_lower_transposed_from_right(const In& l, MatrixRef b);

// Eigenvalues in increasing order and eigenvectors of a symmetric matrix, from its lower triangle.
struct Eigenpairs {
  Vector values;
  Matrix vectors;
};
Eigenpairs eigenpairs_of(const In& a);
Vector eigenvalues_of(const In& a);

}  // namespace ckce
