#include "core/linalg/products.hpp"
#include "core/linalg/whole_registers.hpp"

namespace ckce {

void add_product_tn(FloatMatrixRef out, float scale, const FloatIn& a, const FloatIn& b) {
  add_tn(out, scale, a, b);
}

void add_product_nt(FloatMatrixRef out, float scale, const FloatIn& a, const FloatIn& b) {
  out.noalias() += scale * a * b.transpose();
}

void add_gram(FloatMatrixRef out, const FloatIn& a) { add_lower_gram(out, a); }

}  // namespace ckce
