#include "core/linalg/products.hpp"

#include "core/linalg/whole_registers.hpp"

namespace ckce {

void add_product(MatrixRef out, double scale, const In& a, const In& b) {
  out.noalias() += scale * a * b;
}

void add_product_tn(MatrixRef out, double scale, const In& a, const In& b) {
  add_tn(out, scale, a, b);
}

void add_product_nt(MatrixRef out, double scale, const In& a, const In& b) {
  out.noalias() += scale * a * b.transpose();
}

void add_gram(MatrixRef out, const In& a) { add_lower_gram(out, a); }

void add_lower_product_tn(MatrixRef out, const In& a, const In& b) {
  out.triangularView<Eigen::Lower>() += a.transpose() * b;
}

void add_symmetric_product(MatrixRef out, const In& a, const In& b) {
  out.noalias() += a.selfadjointView<Eigen::Lower>() * b;
}

void solve_lower(const In& l, MatrixRef b) { l.triangularView<Eigen::Lower>().solveInPlace(b); }

void solve_lower_transposed(const In& l, MatrixRef b) {
  l.triangularView<Eigen::Lower>().transpose().solveInPlace(b);
}

void solve_lower_from_right(const In& l, MatrixRef b) {
  l.triangularView<Eigen::Lower>().solveInPlace<Eigen::OnTheRight>(b);
}

void solve_lower_transposed_from_right(const In& l, MatrixRef b) {
  l.triangularView<Eigen::Lower>().transpose().solveInPlace<Eigen::OnTheRight>(b);
}

}  // namespace ckce
