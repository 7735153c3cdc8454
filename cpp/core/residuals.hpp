// r_i = e_{y_i} - q_i. The labels enter CKCE and JKCE only through these rows; neither the one-hot
// matrix nor M_Z is built, for M_Z *is* Q.
#pragma once

#include "products.hpp"
#include "types.hpp"

namespace ckce {

// Turns a block of Q into the same rows of R, in place.
template <class Scalar>
void residuals_in_place(const std::int64_t* labels,
                        Eigen::Ref<Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>> q) {
  q = -q;
  for (Index i = 0; i < q.rows(); ++i) q(i, labels[i]) += Scalar(1);
}
inline void residuals_in_place(const std::int64_t* labels, MatrixRef q) {
  residuals_in_place<double>(labels, q);
}

// A label kernel L = F F' acts as r_i -> r_i F; an empty F is the Kronecker kernel, F = I.
struct LabelKernel {
  Matrix factor;  // (m, width)

  bool kronecker() const { return factor.size() == 0; }
  Matrix apply(const In& r) const { return kronecker() ? Matrix(r) : product(r, factor); }

  // r_i L r_i'
  Vector norms(const In& r) const {
    if (kronecker()) return r.rowwise().squaredNorm();
    return product(r, factor).rowwise().squaredNorm();
  }

  // The mean of r_i L r_i' over labels drawn from q_i: sum_j q_ij L_jj - q_i L q_i'
  Vector spreads(const In& q) const {
    if (kronecker()) return (1.0 - q.rowwise().squaredNorm().array()).matrix();
    return product(q, factor.rowwise().squaredNorm()) - norms(q);
  }
};

// w_i of `rows` samples from `begin` on
inline Vector weights_of(const Samples& samples, Index begin, Index rows) {
  if (!samples.weights) return Vector::Ones(rows);
  return Eigen::Map<const Vector>(samples.weights + begin, rows);
}

inline double total_weight(const Samples& samples) {
  return samples.weights ? weights_of(samples, 0, samples.n()).sum()
                         : static_cast<double>(samples.n());
}

// scale(w_i) r_i F as panels, (n, width)
template <class Scale>
Panels residual_panels(const Samples& samples, const Panels& q, const LabelKernel& label,
                       Scale scale) {
  Panels r(samples.n(), label.kronecker() ? samples.m() : label.factor.cols());
  for (Index i = 0; i < r.count(); ++i) {
    const Index begin = i * kPanel;
    const Index rows = std::min(kPanel, samples.n() - begin);
    Matrix block = q.panel(i).topRows(rows);
    residuals_in_place(samples.labels + begin, block);
    r.panel(i).topRows(rows) =
        weights_of(samples, begin, rows).unaryExpr(scale).asDiagonal() * label.apply(block);
  }
  return r;
}

// From w_i t_i to psi_i = scale (t_i - mean t), the influence of one copy of sample i.
inline void finish_influence(Vector& t, const Samples& samples, double scale) {
  const double mean = t.sum() / total_weight(samples);
  for (Index i = 0; i < t.size(); ++i) t[i] = scale * (t[i] / samples.weight(i) - mean);
}

}  // namespace ckce
