// CKCE = |X|_F^2, X = (Phi'Phi + ridge I)^-1 Phi'R F: the difference of the operators of eq. (9) of
// the paper. d unknowns in place of n.
#include <limits>
#include <utility>

#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

// By n instead of d unknowns: K = Phi Phi'. O(n^2 d)
Solution ckce_dual(const Features& features, const Samples& samples, const LabelKernel& label,
                   double ridge, bool full, Parallel& parallel) {
  Matrix gram = Matrix::Zero(samples.n(), samples.n());
  {  // K takes their place
    Block<double> all(features, samples.n());
    all.load(samples, 0);
    add_product_nt(gram, 1.0, all.phi(), all.phi());
  }
  const double entry_error = kUnit * static_cast<double>(features.d() + 4);  // a share of max k
  return ckce_gram(gram, entry_error * gram.diagonal().maxCoeff(), samples, label, ridge, full,
                   parallel);
}

// The second pass: what needs the rows again, with X and H = M^-1 X, M = Phi'Phi + ridge I.
//
// The certificate needs, with U = Phi H and V = (R - Phi X) / ridge, s_X = sum_i sqrt(w_i E_ii)
// |x_i| and |X|.
struct SecondPass {
  double debias = 0.0;
  double floor = 0.0;
  double s_u = 0.0;
  double s_v = 0.0;
  double u2 = 0.0;
  double v2 = 0.0;
  double trace_e = 0.0;

  void add(const SecondPass& block) {
    debias += block.debias;
    floor += block.floor;
    s_u += block.s_u;
    s_v += block.s_v;
    u2 += block.u2;
    v2 += block.v2;
    trace_e += block.trace_e;
  }
};

// `root` is that of M^-2, see RidgeSolver. Leaves R in place of Q. Writes w_i <u_i, e_i> into
// `influence`. Debias term and floor only if rows are `independent`.
SecondPass look_again(Block<double>& block, const Features& features, const LabelKernel& label,
                      const Matrix& x, const Matrix& h, double ridge, const RidgeSolver& solver,
                      const Matrix& root, bool independent, Vector& influence) {
  SecondPass sums;
  const Vector e_ii = features.left_out(block.begin, block.q(), block.phi());
  const Vector spreads = label.spreads(block.q());
  block.turn_into_residuals();
  const Matrix r = label.apply(block.q());
  const Matrix u = product(block.phi(), h);      // u_i = phi_i H
  const Matrix e = r - product(block.phi(), x);  // e_i = r_i - phi_i X = ridge v_i
  if (independent) {
    const Vector a_ii = solver.solved_norms(root, block.phi()).cwiseProduct(block.weights);
    sums.debias = a_ii.dot(r.rowwise().squaredNorm());
    sums.floor = a_ii.dot(spreads);
  }
  influence.segment(block.begin, block.rows) =
      u.cwiseProduct(e).rowwise().sum().cwiseProduct(block.weights);
  if (features.certified()) {
    // Rows carry sqrt(w_i) in u, v and in sqrt(E_ii).
    const auto root_e = e_ii.cwiseSqrt();
    const Vector u_norms = u.rowwise().norm();
    const Vector v_norms = e.rowwise().norm() / ridge;
    sums.s_u = root_e.cwiseProduct(u_norms).dot(block.weights);
    sums.s_v = root_e.cwiseProduct(v_norms).dot(block.weights);
    sums.u2 = u_norms.cwiseAbs2().dot(block.weights);
    sums.v2 = v_norms.cwiseAbs2().dot(block.weights);
    sums.trace_e = e_ii.dot(block.weights);
  }
  return sums;
}

// The values that remain when one of kFeatureGroups groups of features is left out.
Vector leave_groups_out(const Features& features, const Moments& moments, const Matrix& phi_r,
                        double ridge, Parallel& parallel) {
  if (features.without(0, kFeatureGroups).size() == 0) return {};
  Vector values(kFeatureGroups);
  for (Index group = 0; group < kFeatureGroups; ++group) {
    const Vector factors = features.without(group, kFeatureGroups);
    Matrix x = factors.asDiagonal() * phi_r;
    const RidgeSolver solver(factors.asDiagonal() * moments.phi_phi * factors.asDiagonal(), ridge,
                             parallel);
    solver.solve(x, parallel);
    values[group] = x.squaredNorm();
  }
  return values;
}

}  // namespace

Solution ckce_features(const Features& features, const Samples& samples, const LabelKernel& label,
                       double ridge, Precision precision, bool full, Parallel& parallel,
                       bool bounded) {
  if (samples.n() < features.d() && !features.certified())
    return ckce_dual(features, samples, label, ridge, full, parallel);

  parallel.span(0.0, full ? 0.4 : 1.0);
  Moments moments(features);
  moments.add(features, samples, nullptr, precision, parallel);
  Solution solution;
  Matrix x = label.apply(moments.phi_r());  // X = M^-1 Phi'R F  (d, width)   eq. (9)
  if (full) solution.replicates = leave_groups_out(features, moments, x, ridge, parallel);
  const double trace = moments.phi_phi.diagonal().sum();
  const double slack = full && bounded ? features.slack(moments.phi_phi, moments.weight, parallel)
                                       : std::numeric_limits<double>::infinity();  // no certificate
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  solver.solve(x, parallel);
  solution.per_class = x.colwise().squaredNorm().transpose();
  solution.value = solution.per_class.sum();
  if (!full) return solution;

  Matrix h = x;
  solver.solve(h, parallel);
  solution.influence.resize(samples.n());
  const Matrix root = samples.groups ? Matrix() : solver.root_of_square(parallel);
  SecondPass sums;
  parallel.span(0.4, samples.groups ? 0.6 : 1.0);
  parallel.each(count_pieces(samples.n(), kBlock), 3 * Block<double>::size(features), [&] {
    return [&, block = Block<double>(features)](Index task) mutable {
      block.load(samples, task * kBlock);
      const SecondPass found = look_again(block, features, label, x, h, ridge, solver, root,
                                          !samples.groups, solution.influence);
      parallel.in_turn(task, [&] { sums.add(found); });
    };
  });
  solution.debias = sums.debias;
  solution.floor = sums.floor;
  if (samples.groups) {
    parallel.span(0.6, 1.0);
    solution.debias = debias_by_group(features, samples, label, solver, parallel);
    solution.floor = kNoFloor;
  }
  const PrimalError error(x, h, trace, depth_in_blocks(samples.n()), label, moments.weight, ridge);
  double bound = error.value;
  if (features.certified())
    bound += certificate({sums.s_u, std::sqrt(sums.u2), error.u},
                         {sums.s_v, std::sqrt(sums.v2), error.v}, sums.trace_e, slack, ridge);
  solution.bound = finish_bound(bound, solution.value, label, moments.weight, ridge);
  finish_influence(solution.influence, samples, 2.0 * total_weight(samples));
  return solution;
}

}  // namespace ckce
