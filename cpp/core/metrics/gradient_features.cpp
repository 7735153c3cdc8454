// The gradient with Phi Phi' in place of K, by d unknowns: N = (Phi'Phi + ridge I)^-1, X = N Phi'R
// F, H = N X, E = R F - Phi X, U = Phi H:
//   Rbar = 2 U          Phibar = 2 (E H' - U X')
// With a_i = |N phi_i|^2, D = diag(|r_i F|^2), C = Phi'D Phi and T = N C N N + N N C N the debiased
// value, without sum_i a_i |r_i F|^2, has Rbar - 2 diag(a) R F and Phibar - 2 D Phi N N + 2 Phi T.
#include <cmath>
#include <utility>

#include "core/features/block.hpp"
#include "core/linalg/lower_triangle.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/gradient.hpp"
#include "core/metrics/gradient_dual.hpp"
#include "core/stream/moments.hpp"

namespace ckce {
namespace {

// By n instead of d unknowns: K = Phi Phi' and Phibar = 2 Kbar Phi. O(n^2 (n + d))
Gradient by_rows(const Features& features, const Samples& samples, const LabelKernel& label,
                 double ridge, Sides sides, Parallel& parallel) {
  Block<double> all(features, samples.n());
  all.load(samples, 0);
  Matrix gram = Matrix::Zero(samples.n(), samples.n());
  add_product_nt(gram, 1.0, all.phi(), all.phi());
  DualGradient dual = gradient_dual(std::move(gram), samples, label, ridge, sides, parallel);
  if (sides.through_kernel) {
    Matrix phi_bar = Matrix::Zero(samples.n(), features.d());
    add_product(phi_bar, 2.0, dual.gram, all.phi());
    features.pull_back(all.q(), all.phi(), phi_bar, dual.probs);
  }
  return {dual.value, std::move(dual.probs)};
}

// What the second pass needs of the sums over the rows.
struct Solved {
  double value = 0.0;
  Matrix xh;      // [X | H] (d, 2 width), X = N Phi'R F, H = N X
  Matrix square;  // J with |J phi_i|^2 = a_i, of a debiased value with the kernel held fixed
  Matrix nn;      // N N, of one that goes through the kernel
  Matrix t;       // T, of the same
};

// C = Phi'diag(w |r F|^2)Phi (d, d). O(n d^2)
Matrix spread_moments(const Features& features, const Samples& samples, const LabelKernel& label,
                      Parallel& parallel) {
  Matrix c = Matrix::Zero(features.d(), features.d());
  parallel.each(count_pieces(samples.n(), kBlock), Block<double>::size(features) + c.size(), [&] {
    return [&, block = Block<double>(features),
            part = Matrix(features.d(), features.d())](Index task) mutable {
      block.load(samples, task * kBlock);
      block.turn_into_residuals();
      const Vector scale = label.norms(block.q()).cwiseProduct(block.weights).cwiseSqrt();
      block.phi().array().colwise() *= scale.array();
      part.setZero();
      add_gram(part, block.phi());
      parallel.in_turn(task, [&] { add_lower(c, part); });
    };
  });
  return c.selfadjointView<Eigen::Lower>();
}

Solved solve(const Features& features, const Samples& samples, const LabelKernel& label,
             double ridge, Sides sides, Parallel& parallel) {
  Moments moments(features);
  moments.add(features, samples, nullptr, Precision::kFloat64, parallel);
  Solved solved;
  Matrix x = label.apply(moments.phi_r());
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  solver.solve(x, parallel);
  const Vector per_class = x.colwise().squaredNorm().transpose();
  solved.value = per_class.sum();
  solved.xh.resize(x.rows(), 2 * x.cols());
  solved.xh.leftCols(x.cols()) = x;
  solver.solve(x, parallel);
  solved.xh.rightCols(x.cols()) = x;
  if (!sides.debias) return solved;
  if (!sides.through_kernel) {
    solved.square = solver.root_of_square(parallel);
    if (solved.square.size() > 0) return solved;
  }
  solved.nn = Matrix::Identity(features.d(), features.d());
  solver.solve(solved.nn, parallel);
  solver.solve(solved.nn, parallel);
  if (!sides.through_kernel) return solved;
  Matrix ncn = spread_moments(features, samples, label, parallel);
  solver.solve(ncn, parallel);
  ncn.transposeInPlace();
  solver.solve(ncn, parallel);
  solver.solve(ncn, parallel);
  solved.t = ncn + ncn.transpose();
  return solved;
}

// Writes rows of `gradient`; returns their part of the debias term.
double add_block(Block<double>& block, const Features& features, const LabelKernel& label,
                 const Solved& solved, Sides sides, Matrix& gradient) {
  const Matrix q = block.q();
  block.turn_into_residuals();
  const auto phi = block.phi();
  const Matrix r = label.apply(block.q());
  const Index width = r.cols();
  const Matrix xh = product(phi, solved.xh);  // [Phi X | U]
  const auto u = xh.rightCols(width);
  const Vector norms = r.rowwise().squaredNorm();
  Matrix r_bar = 2.0 * u;
  Matrix phi_nn;
  double debias = 0.0;
  if (sides.debias) {
    Vector a;
    if (solved.square.size() > 0) {
      a = norms_by_root(solved.square, phi);
    } else {
      phi_nn = product(phi, solved.nn);
      a = phi.cwiseProduct(phi_nn).rowwise().sum();
    }
    r_bar -= 2.0 * a.asDiagonal() * r;
    debias = a.cwiseProduct(block.weights).dot(norms);
  }
  const auto w = block.weights.asDiagonal();
  r_bar = w * r_bar;
  Matrix q_bar =
      label.kronecker() ? Matrix(-r_bar) : Matrix(-product(r_bar, label.factor.transpose()));
  if (sides.through_kernel) {
    Matrix left(block.rows, 2 * width);  // E H' - U X' = [-U | E] [X | H]'
    left << -u, r - xh.leftCols(width);
    Matrix phi_bar = Matrix::Zero(block.rows, features.d());
    add_product_nt(phi_bar, 2.0, left, solved.xh);
    if (sides.debias) {
      phi_bar -= 2.0 * norms.asDiagonal() * phi_nn;
      add_product(phi_bar, 2.0, phi, solved.t);
    }
    phi_bar = w * phi_bar;
    features.pull_back(q, phi, phi_bar, q_bar);
  }
  gradient.middleRows(block.begin, block.rows) = q_bar;
  return debias;
}

}  // namespace

Gradient gradient_features(const Features& features, const Samples& samples,
                           const LabelKernel& label, double ridge, Sides sides,
                           Parallel& parallel) {
  if (samples.n() < features.d()) return by_rows(features, samples, label, ridge, sides, parallel);
  parallel.span(0.0, 0.5);
  const Solved solved = solve(features, samples, label, ridge, sides, parallel);
  Gradient gradient{solved.value, unset<Matrix>(samples.n(), samples.m())};
  parallel.span(0.5, 1.0);
  parallel.each(count_pieces(samples.n(), kBlock), 4 * Block<double>::size(features), [&] {
    return [&, block = Block<double>(features)](Index task) mutable {
      block.load(samples, task * kBlock);
      const double debias = add_block(block, features, label, solved, sides, gradient.probs);
      parallel.in_turn(task, [&] { gradient.value -= debias; });
    };
  });
  return gradient;
}

}  // namespace ckce
