#include "core/metrics/shapes.hpp"

#include "core/linalg/products.hpp"

namespace ckce {

Matrix shapes(const In& q) {
  const Index m = q.cols();
  Matrix x(q.rows(), kShapes * m);
  x.leftCols(m) = q.cwiseMax(0.0).cwiseSqrt();
  x.middleCols(m, m) = q.cwiseAbs2();
  x.rightCols(m).setOnes();
  for (Index l = 0; l < kShapes; ++l) {
    auto shape = x.middleCols(l * m, m);
    const Vector sums = shape.rowwise().sum();
    shape.array().colwise() /= sums.array();
    shape -= q;
  }
  return x;
}

Matrix fitted_shapes(const Matrix& x, const Vector& fit) {
  const Index m = x.cols() / kShapes;
  Matrix out = fit[0] * x.leftCols(m);
  for (Index l = 1; l < kShapes; ++l) out += fit[l] * x.middleCols(l * m, m);
  return out;
}

Matrix scores_of(const Matrix& v, const In& r) {
  Matrix out(r.rows(), kShapes);
  for (Index l = 0; l < kShapes; ++l)
    out.col(l) = v.middleCols(l * r.cols(), r.cols()).cwiseProduct(r).rowwise().sum();
  return out;
}

Matrix shape_scores(Matrix& x, const In& phi, const Matrix& spread, const In& r) {
  add_product(x, -1.0, phi, spread);
  return scores_of(x, r);
}

}  // namespace ckce
