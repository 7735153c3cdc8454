// The kernel l of the labels in eq. (7) of the paper. L = F F' acts as r_i -> r_i F; an empty F is
// the Kronecker kernel, F = I.
#pragma once

#include "core/base/panels.hpp"
#include "core/base/residuals.hpp"
#include "core/base/samples.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

struct LabelKernel {
  Matrix factor;  // F (m, width)

  bool kronecker() const { return factor.size() == 0; }
  Matrix apply(const In& r) const { return kronecker() ? Matrix(r) : product(r, factor); }

  // r_i L r_i'
  Vector norms(const In& r) const {
    if (kronecker()) return r.rowwise().squaredNorm();
    return product(r, factor).rowwise().squaredNorm();
  }

  // The mean of r_i L r_i' over labels drawn from q_i: sum_j q_ij L_jj / sum_j q_ij - q_i L q_i'.
  // Rows of half precision miss the sum of 1; with the quotient L = I gives 1 - |q_i|^2 for them.
  Vector spreads(const In& q) const {
    if (kronecker()) return (1.0 - q.rowwise().squaredNorm().array()).matrix();
    return product(q, factor.rowwise().squaredNorm()).cwiseQuotient(q.rowwise().sum()) - norms(q);
  }
};

// scale(w_i) r_i F as panels, (n, width)
template <class Scale>
Panels residual_panels(const Samples& samples, const Panels& q, const LabelKernel& label,
                       Scale scale) {
  Panels r(samples.n(), label.kronecker() ? samples.m() : label.factor.cols());
  for (Index i = 0; i < r.count(); ++i) {
    const Index begin = i * kPanel;
    const Index rows = r.rows(i);
    Matrix block = q.panel(i).topRows(rows);
    residuals_in_place(samples.labels + begin, block);
    r.panel(i).topRows(rows) =
        weights_of(samples, begin, rows).unaryExpr(scale).asDiagonal() * label.apply(block);
  }
  return r;
}

}  // namespace ckce
