#include "loo.hpp"

#include "moments.hpp"
#include "products.hpp"
#include "ridge_solve.hpp"

namespace ckce {

Vector loo_features(const Features& features, const Samples& samples, const LabelKernel& label,
                    const Vector& ridges, Parallel& parallel) {
  const Index n = samples.n();
  const double passes = static_cast<double>(ridges.size() + 1);
  parallel.span(0.0, 1.0 / passes);
  Moments moments(features, samples.m());
  moments.add(features, samples, nullptr, Precision::kFloat64, parallel);
  const Matrix phi_r = label.apply(moments.phi_r());
  Vector errors = Vector::Zero(ridges.size());
  for (Index k = 0; k < ridges.size(); ++k) {
    const RidgeSolver solver(moments.phi_phi, ridges[k], parallel);
    Matrix x = phi_r;
    solver.solve(x, parallel);
    parallel.span(static_cast<double>(k + 1) / passes, static_cast<double>(k + 2) / passes);
    parallel.each((n + kBlock - 1) / kBlock, [&] {
      return [&](Index task) {
        const Index begin = task * kBlock;
        const Index rows = std::min(kBlock, n - begin);
        Matrix q(rows, samples.m());
        Matrix phi(rows, features.d());
        samples.probs.load(begin, rows, q);
        features.fill(begin, q, phi);
        residuals_in_place(samples.labels + begin, q);
        const Matrix e = label.apply(q) - product(phi, x);
        Matrix a = phi.transpose();
        solver.solve(a);
        const Vector h = a.transpose().cwiseProduct(phi).rowwise().sum();
        const double sum = weights_of(samples, begin, rows)
                               .cwiseProduct(e.rowwise().squaredNorm())
                               .dot((1.0 - h.array()).square().inverse().matrix());
        parallel.in_turn(task, [&] { errors[k] += sum; });
      };
    });
  }
  return errors / total_weight(samples);
}

Vector loo_cholesky(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    Index rank, double tol, std::uint64_t seed, const Vector& ridges,
                    Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  Cholesky factor(kernel, points, Pivoting::kRandom, seed, parallel);
  factor.extend(std::min(rank, samples.n()), tol, parallel);
  return loo_features(factor, samples, label, ridges, parallel);
}

}  // namespace ckce
