#include "core/metrics/witness.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/features/block.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/conjugate_gradients.hpp"
#include "core/metrics/preconditioner.hpp"
#include "core/stream/moments.hpp"

namespace ckce {
namespace {

constexpr double kTolerance = 1e-11;  // of what an iteration leaves of |R|

Matrix all_residuals(const Samples& samples) {
  Matrix r(samples.n(), samples.m());
  samples.probs.load(0, samples.n(), r);
  residuals_in_place(samples.labels, r);
  return r;
}

// (K + ridge diag(w)^-1): V = W R is what sqrt(w) (sqrt(w) K sqrt(w) + ridge I)^-1 sqrt(w) R is.
RidgeSolver factorise(const Kernel& kernel, const Samples& samples, double ridge,
                      Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  Matrix gram = whole_gram({kernel, points}, parallel);
  gram.diagonal() += ridge * weights_of(samples, 0, samples.n()).cwiseInverse();
  return RidgeSolver(std::move(gram), 0.0, parallel);
}

}  // namespace

Matrix witness_features(const Features& features, const Samples& samples, double ridge,
                        Parallel& parallel) {
  Moments moments(features);
  moments.add(features, samples, nullptr, Precision::kFloat64, parallel);
  Matrix x = moments.phi_r();
  RidgeSolver(std::move(moments.phi_phi), ridge, parallel).solve(x, parallel);
  return x;
}

Matrix own_witness_features(const Features& features, const Samples& samples, double ridge,
                            Parallel& parallel) {
  parallel.span(0.0, 0.5);
  Moments moments(features);
  moments.add(features, samples, nullptr, Precision::kFloat64, parallel);
  Matrix x = moments.phi_r();
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  solver.solve(x, parallel);
  Matrix out(samples.n(), samples.m());
  parallel.span(0.5, 1.0);
  parallel.each(count_pieces(samples.n(), kBlock), 3 * Block<double>::size(features), [&] {
    return [&, block = Block<double>(features)](Index task) mutable {
      block.load(samples, task * kBlock);
      block.turn_into_residuals();
      Matrix a = block.phi().transpose();
      solver.solve(a);
      const Vector h = a.transpose()
                           .cwiseProduct(block.phi())
                           .rowwise()
                           .sum()
                           .cwiseProduct(block.weights.cwiseMin(1.0));
      const Matrix f = product(block.phi(), x);
      out.middleRows(block.begin, block.rows) =
          (1.0 - h.array()).inverse().matrix().asDiagonal() * (f - h.asDiagonal() * block.q());
    };
  });
  return out;
}

Matrix witness_exact(const Kernel& kernel, const Samples& samples, double ridge, Solver solver,
                     Parallel& parallel) {
  if (solver == Solver::kFactorise) {
    const RidgeSolver dual = factorise(kernel, samples, ridge, parallel);
    Matrix v = all_residuals(samples);
    dual.solve(v, parallel);
    return v;
  }
  const auto root = [](double w) { return std::sqrt(w); };
  const Points points = kernel.points(samples.probs, parallel);
  const Gram gram{kernel, points};
  const Panels r = residual_panels(samples, points.q, LabelKernel{}, root);
  const WeightedGram weighted(gram, samples, parallel);
  const Preconditioner preconditioner(gram, samples, ridge, parallel);
  const double enough = kTolerance * r.data().norm();
  const ConjugateGradients cg(weighted, preconditioner, r, ridge, parallel, [&](const auto& state) {
    return state.rest.data().norm() <= enough;
  });
  if (!cg.done)
    throw std::domain_error(
        "the iteration for method='exact' did not converge: regularization is too small for it; "
        "pass a larger one, or method='cholesky'");
  Matrix v(samples.n(), samples.m());
  for (Index i = 0; i < samples.n(); ++i) v.row(i) = root(samples.weight(i)) * cg.x.row(i);
  return v;
}

Matrix own_witness_exact(const Kernel& kernel, const Samples& samples, double ridge,
                         Parallel& parallel) {
  const RidgeSolver solver = factorise(kernel, samples, ridge, parallel);
  const Matrix r = all_residuals(samples);
  Matrix v = r;
  solver.solve(v, parallel);
  Vector diagonal(samples.n());  // W_ii
  parallel.each_piece(samples.n(), kSolveColumns, [&](Index begin, Index columns) {
    Matrix w = Matrix::Zero(samples.n(), columns);
    w.middleRows(begin, columns).setIdentity();
    solver.solve(w);
    for (Index j = 0; j < columns; ++j) diagonal[begin + j] = w(begin + j, j);
  });
  Matrix out(samples.n(), samples.m());
  for (Index i = 0; i < samples.n(); ++i) {
    const double c = ridge / samples.weight(i);
    const double h = (1.0 - c * diagonal[i]) / std::max(samples.weight(i), 1.0);
    out.row(i) = (r.row(i) - c * v.row(i) - h * r.row(i)) / (1.0 - h);
  }
  return out;
}

Matrix kernel_sums(const Kernel& kernel, const Probs& at, const Probs& points, const Matrix& v,
                   Parallel& parallel) {
  const Points known = kernel.points(points, parallel);
  Vector mean = Vector::Zero(points.m);  // of the coordinates of these points
  for (Index i = 0; i < known.q.count(); ++i) mean += known.q.panel(i).colwise().sum().transpose();
  mean /= static_cast<double>(points.n);
  Matrix out(at.n, v.cols());
  parallel.each_piece(at.n, kPanel, [&](Index begin, Index count) {
    Parallel alone;
    Matrix asked(count, at.m);
    at.load(begin, count, asked);
    const Points here = kernel.points(asked, mean, alone);
    Matrix tile(kPanel, kPanel);
    Matrix sum = Matrix::Zero(count, v.cols());
    for (Index j = 0; j < known.q.count(); ++j) {
      const Index columns = known.q.rows(j);
      kernel.full_tile(here, 0, known, j, tile.leftCols(columns));
      add_product(sum, 1.0, tile.topLeftCorner(count, columns), v.middleRows(j * kPanel, columns));
    }
    out.middleRows(begin, count) = sum;
  });
  return out;
}

}  // namespace ckce
