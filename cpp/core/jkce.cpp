#include "jkce.hpp"

#include "gram_product.hpp"
#include "moments.hpp"

namespace ckce {

JkceSums jkce_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  Panels r = residual_panels(samples, points.q, label, [](double w) { return w; });
  const Vector k = kernel.diagonal(points, parallel);
  JkceSums sums{0.0, 0.0};
  for (Index i = 0; i < samples.n(); ++i) {
    const double w = samples.weight(i);
    const double h = k[i] * r.row(i).squaredNorm() / (w * w);
    sums.diagonal += w * h;
    sums.off_diagonal += (w * w - w) * h;
  }
  sums.off_diagonal += off_diagonal_form(kernel, points, r, parallel);
  return sums;
}

JkceSums jkce_gram(const Eigen::Ref<const Matrix>& gram, const Samples& samples,
                   const LabelKernel& label) {
  Matrix q(samples.n(), samples.m());
  samples.probs.load(0, samples.n(), q);
  residuals_in_place(samples.labels, q);
  const Matrix r = label.apply(q);
  const Vector w = weights_of(samples, 0, samples.n());
  const Vector h = gram.diagonal().cwiseProduct(r.rowwise().squaredNorm());
  const Matrix wr = w.asDiagonal() * r;
  Matrix off = gram;
  off.diagonal().setZero();
  return {wr.cwiseProduct(product(off, wr)).sum() + h.dot(w.cwiseProduct(w) - w), h.dot(w)};
}

JkceSums jkce_features(const Features& features, const Samples& samples, const LabelKernel& label,
                       Parallel& parallel) {
  Moments moments(features, samples.m());
  moments.add(features, samples, &label, Precision::kFloat64, parallel);
  const double all = label.apply(moments.phi_r()).squaredNorm();
  return {all - moments.diagonal, moments.diagonal};
}

}  // namespace ckce
