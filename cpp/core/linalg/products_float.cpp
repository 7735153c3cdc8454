#include "core/linalg/products.hpp"

namespace ckce {

void add_product_tn(FloatMatrixRef out, float scale, const FloatIn& a, const FloatIn& b) {
  out.noalias() += scale * a.transpose() * b;
}

void add_product_nt(FloatMatrixRef out, float scale, const FloatIn& a, const FloatIn& b) {
  out.noalias() += scale * a * b.transpose();
}

void add_gram(FloatMatrixRef out, const FloatIn& a) {
  out.selfadjointView<Eigen::Lower>().rankUpdate(a.transpose());
}

}  // namespace ckce
