// CKCE = Tr V'K V, V = (K + ridge I)^-1 R F: eq. (7) of the paper, with K of a kernel. For many
// rows by conjugate gradients, whose error is certified: K is never stored.
#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/features/linear.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/metrics/block_solve.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/conjugate_gradients.hpp"
#include "core/metrics/diagonal_terms.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {
namespace {

// How far the value may be off: what is left of both systems, rho and sigma, as computed and with
// what rounding hides of it; what rounding moves in K V, in the correction by rho, and in the sums.
// Where rows repeat, V is as large as R / ridge and the value is not: |V| kx_error is eps /
// lambda^2.
double bound_of(const ConjugateGradients& v, const ConjugateGradients& y, double r_error,
                double ridge) {
  const double rho_error = v.rest_error + r_error;
  const double rho = v.rest.data().norm() + rho_error;
  const double sigma = y.rest.data().norm() + y.rest_error;
  const double x = v.x.data().norm();
  const double u = (v.x.data() - ridge * y.x.data()).norm();
  const double terms = x * (v.kx.data().norm() + 2.0 * v.rest.data().norm()) +
                       2.0 * ridge * y.x.data().norm() * v.rest.data().norm();
  return 2.0 * sigma * rho + rho * rho / (4.0 * ridge) + x * v.kx_error + 2.0 * u * rho_error +
         depth_in_panels(v.x.n()) * kUnit * terms;
}

// The value, per class, from V = W R and Y = W V up to what is left of their systems: Tr V'K V +
// 2 <V - ridge Y, rho>.
Vector value_per_class(const ConjugateGradients& v, const Panels& y, double ridge) {
  Vector per_class = Vector::Zero(y.width());
  for (Index i = 0; i < y.count(); ++i)
    per_class += (v.x.panel(i).cwiseProduct(v.kx.panel(i) + 2.0 * v.rest.panel(i)) -
                  2.0 * ridge * y.panel(i).cwiseProduct(v.rest.panel(i)))
                     .colwise()
                     .sum()
                     .transpose();
  return per_class;
}

// Value and influence. None if one of the two systems takes more than `most` products.
std::optional<Solution> solve_systems(const WeightedGram& weighted,
                                      const Preconditioner& preconditioner, const Panels& q,
                                      const Samples& samples, const LabelKernel& label,
                                      double ridge, double tol, Index most, bool by_blocks,
                                      bool full, Parallel& parallel) {
  const auto residuals = [&] {
    return residual_panels(samples, q, label, [](double w) { return std::sqrt(w); });
  };
  const double round_off = 1e-15;
  const double enough = 1e-9;  // left of Y = W V in K Y, of which the influence is made
  // The influence is linear in rho, the value is not: where `tol` is loose, rho is solved for, too.
  const auto least_of = [&](double value, double r_norm) {
    return std::max(1e-5 * std::sqrt(ridge * value), round_off * r_norm);
  };
  const auto solve_rest = [&](Panels& rest, double least, Solution& solution) {
    ConjugateGradients more(
        weighted, preconditioner, rest, ridge, parallel,
        [&](const auto& cg) { return cg.rest.data().norm() <= least; }, most);
    solution.iterations += more.iterations;
    rest = std::move(more.rest);
    return more;
  };
  const auto finish = [&](Solution solution, const Panels& v, const Panels& ky) {
    solution.influence.resize(samples.n());
    for (Index i = 0; i < samples.n(); ++i) solution.influence[i] = v.row(i).dot(ky.row(i));
    finish_influence(solution.influence, samples, 2.0 * total_weight(samples) * ridge);
    return solution;
  };
  if (by_blocks) {
    BlockSolve solved(weighted, preconditioner, residuals(), ridge, tol, parallel);
    if (solved.done) {
      Solution solution;
      solution.per_class = solved.per_class();
      solution.value = solution.per_class.sum();
      solution.iterations = solved.iterations;
      solution.bound = solved.bound(ridge);
      if (!full) return solution;
      const double r_norm = residuals().data().norm();
      solution.bound =
          solved.full_bound(ridge, residual_error(label, total_weight(samples), r_norm));
      Panels v = std::move(solved.v);
      Panels rho = std::move(solved.rho);
      solved.release();
      const double least = least_of(solution.value, r_norm);
      if (rho.data().norm() > least) v.data() += solve_rest(rho, least, solution).x.data();
      rho = Panels();
      const double x_norm = v.data().norm();
      const ConjugateGradients y(
          weighted, preconditioner, v, ridge, parallel,
          [&](const auto& cg) { return cg.rest.data().norm() <= enough * x_norm; }, most);
      if (!y.done) return std::nullopt;
      solution.iterations += y.iterations;
      return finish(std::move(solution), v, y.kx);
    }
  }
  const Panels r = residuals();
  const double r_norm = r.data().norm();
  const double r_error = residual_error(label, total_weight(samples), r_norm);

  // The value is known up to 2 |sigma| |rho| + |rho|^2 / (4 ridge), where rho and sigma are what is
  // left of the systems for V = W R and Y = W V.
  ConjugateGradients v(
      weighted, preconditioner, r, ridge, parallel,
      [&](const auto& cg) {
        const double rho = cg.rest.data().norm();
        const bool small = rho * rho / (4.0 * ridge) <= 0.25 * tol * dot(cg.x, cg.kx);
        return rho <= round_off * r_norm || (rho <= 1e-5 * r_norm && small);
      },
      most);
  if (!v.done) return std::nullopt;
  const double value = dot(v.x, v.kx);
  const double rho = v.rest.data().norm();
  const double x_norm = v.x.data().norm();
  Solution solution;
  bool settled = false;
  ConjugateGradients y(
      weighted, preconditioner, v.x, ridge, parallel,
      [&](const auto& cg) {
        const double sigma = cg.rest.data().norm();
        if (!settled && (sigma <= round_off * x_norm || 2.0 * sigma * rho <= 0.5 * tol * value)) {
          settled = true;  // the value is the same whether or not the influence needs more steps
          solution.bound = full ? bound_of(v, cg, r_error, ridge)
                                : 2.0 * sigma * rho + rho * rho / (4.0 * ridge);
          solution.per_class = value_per_class(v, cg.x, ridge);
          solution.value = std::max(solution.per_class.sum(), 0.0);
        }
        return settled && (!full || sigma <= enough * x_norm);
      },
      most);
  if (!y.done) return std::nullopt;
  solution.iterations = v.iterations + y.iterations;
  if (!full) return solution;
  const double least = least_of(value, r_norm);
  if (rho > least) {
    v.kx = y.x = Panels();
    const Panels moved = solve_rest(v.rest, least, solution).x;
    v.x.data() += moved.data();
    y.rest.data() += moved.data();
    y.kx.data() += solve_rest(y.rest, enough * x_norm, solution).kx.data();
  }
  return finish(std::move(solution), v.x, y.kx);
}

std::optional<Solution> ckce_by_iteration(const Kernel& kernel, const Samples& samples,
                                          const LabelKernel& label, double ridge, double tol,
                                          Index most, Index block_rank, bool full,
                                          Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  const Gram gram{kernel, points};
  const WeightedGram weighted(gram, samples, parallel);
  Preconditioner preconditioner(gram, samples, ridge, parallel, block_rank);
  auto solution = solve_systems(weighted, preconditioner, points.q, samples, label, ridge, tol,
                                most, block_rank > 0, full, parallel);
  if (!solution || !full) return solution;
  // The panels of both systems are gone: a larger factor takes their place.
  add_diagonal_terms(gram, weighted, samples, label, ridge, preconditioner, *solution, parallel);
  solution->bound =
      finish_bound(solution->bound, solution->value, label, total_weight(samples), ridge);
  return solution;
}

}  // namespace

Solution ckce_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    double ridge, double tol, Solver solver, bool full, Parallel& parallel) {
  if (!kernel.has_own_part())  // K = Q Q': its features are known and few
    return ckce_features(LinearFeatures(samples.m()), samples, label, ridge, Precision::kFloat64,
                         full, parallel);
  if (solver != Solver::kFactorise) {
    const Index n = samples.n();
    const Index m = samples.m();
    const bool blocks = solver == Solver::kBlocks || solves_by_blocks(n, m);
    const bool alone = n > kFactorisationLimit;
    const auto solved =
        ckce_by_iteration(kernel, samples, label, ridge, tol, alone ? kMostProducts : kFewProducts,
                          blocks ? block_rank(n, m) : 0, full, parallel);
    if (solved) return *solved;
    if (alone) throw std::domain_error(kNoConvergence);
  }
  Matrix gram;
  double entry_error;
  {  // K takes their place
    const Points points = kernel.points(samples.probs, parallel);
    gram = whole_gram({kernel, points}, parallel);
    entry_error = kernel.entry_error(points);
  }
  return ckce_gram(gram, entry_error, samples, label, ridge, full, parallel);
}

}  // namespace ckce
