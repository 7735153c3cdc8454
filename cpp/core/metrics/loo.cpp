#include "core/metrics/loo.hpp"

#include "core/features/block.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/stream/moments.hpp"

namespace ckce {

Vector loo_features(const Features& features, const Samples& samples, const LabelKernel& label,
                    const std::vector<double>& ridges, Parallel& parallel) {
  const auto passes = static_cast<double>(ridges.size() + 1);
  parallel.span(0.0, 1.0 / passes);
  Moments moments(features);
  moments.add(features, samples, nullptr, Precision::kFloat64, parallel);
  const Matrix phi_r = label.apply(moments.phi_r());
  Vector errors = Vector::Zero(static_cast<Index>(ridges.size()));
  for (Index k = 0; k < errors.size(); ++k) {
    const RidgeSolver solver(moments.phi_phi, ridges[as_size(k)], parallel);
    Matrix x = phi_r;  // X = M^-1 Phi'R F  (d, width)
    solver.solve(x, parallel);
    parallel.span(static_cast<double>(k + 1) / passes, static_cast<double>(k + 2) / passes);
    parallel.each(count_pieces(samples.n(), kBlock), 3 * Block<double>::size(features), [&] {
      return [&, block = Block<double>(features)](Index task) mutable {
        block.load(samples, task * kBlock);
        block.turn_into_residuals();
        const auto phi = block.phi();
        const Matrix e = label.apply(block.q()) - product(phi, x);
        Matrix a = phi.transpose();
        solver.solve(a);
        const Vector h = a.transpose().cwiseProduct(phi).rowwise().sum();
        const double sum = block.weights.cwiseProduct(e.rowwise().squaredNorm())
                               .dot((1.0 - h.array()).square().inverse().matrix());
        parallel.in_turn(task, [&] { errors[k] += sum; });
      };
    });
  }
  return errors / total_weight(samples);
}

}  // namespace ckce
