// With K = G G' + E and W_0 = (G G' + ridge I)^-1, A_ii is split into three parts:
//   |(G'G + ridge I)^-1 g_i|^2  of the factor of low rank,
//   scale E_ii                  to first order in E, scale = 1 / (ridge + tr E / n)^2,
//   the rest                    in the mean over probes z of random signs: E[(W z)_i (K W z)_i] is
//                               A_ii, and the same z serve for the two parts that are known, so
//                               that only what is left of them is noise.
// Of samples in groups the same with sum_g Tr R_g'A_gg R_g, and probes with E[z z'] = R_g R_g'.
#include "core/metrics/diagonal_terms.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/random.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

constexpr Index kProbes = 16;
constexpr Index kFewRows = 8192;  // up to which a factor of all that may be needed is small
constexpr Index kLargestRank = 4096;
constexpr Index kProbeProducts = 20;  // of their solution: above, more columns cost less

// Where a factorisation is at hand, a factor must leave less to be used, and has fewer columns.
constexpr double kSmallShare = 1e-5;
constexpr Index kExactRows = 800;  // up to here it always serves

// |r_i|^2 and E|r_i|^2, (n,) each.
struct RowNorms {
  Vector norms;
  Vector spreads;

  RowNorms(const Samples& samples, const Panels& q, const LabelKernel& label)
      : norms(samples.n()), spreads(samples.n()) {
    for (Index i = 0; i < q.count(); ++i) {
      const Index begin = i * kPanel;
      const Index rows = q.rows(i);
      Matrix block = q.panel(i).topRows(rows);
      spreads.segment(begin, rows) = label.spreads(block);
      residuals_in_place(samples.labels + begin, block);
      norms.segment(begin, rows) = label.norms(block);
    }
  }
};

double random_sign(SplitMix64& random) { return random.bits() >> 63 ? 1.0 : -1.0; }

// Signs, or of samples in groups one sign for each group times <sqrt(w_i) r_i F, signs>. (n,
// kProbes)
Panels probes(const Samples& samples, const Panels& q, const LabelKernel& label) {
  SplitMix64 random(0);
  Panels z(samples.n(), kProbes);
  if (!samples.groups) {
    for (Index i = 0; i < z.n(); ++i)
      for (Index k = 0; k < kProbes; ++k) z.row(i)[k] = random_sign(random);
    return z;
  }
  const Panels r = residual_panels(samples, q, label, [](double w) { return std::sqrt(w); });
  const Matrix signs = Matrix::NullaryExpr(r.width(), kProbes, [&] { return random_sign(random); });
  for (Index g = 0; g < samples.groups->count(); ++g) {
    const Matrix sign = Matrix::NullaryExpr(1, kProbes, [&] { return random_sign(random); });
    for (const Index i : samples.groups->rows(g))
      z.row(i) = (r.row(i) * signs).cwiseProduct(sign.row(0));
  }
  return z;
}

// A sum over the rows in the mean over probes, and three standard errors of that mean.
struct Mean {
  double value;
  double error;

  explicit Mean(const Vector& sums) : value(sums.mean()) {
    const double n = static_cast<double>(sums.size());
    error = 3.0 * std::sqrt((sums.array() - value).square().sum() / (n * (n - 1.0)));
  }
};

// z_i (A - A_0 - scale E) z_i, row by row: what the two known parts leave. None if that takes too
// many products. (n, kProbes)
std::optional<Panels> rest_of_probes(const WeightedGram& weighted,
                                     const Preconditioner& preconditioner, const Panels& z,
                                     double ridge, double scale, Parallel& parallel) {
  const double limit = 1e-6 * z.data().norm();
  const ConjugateGradients solved(
      weighted, preconditioner, z, ridge, parallel,
      [&](const auto& cg) { return cg.rest.data().norm() <= limit; }, kProbeProducts);
  if (!solved.done) return std::nullopt;
  Panels rest = solved.x;
  rest.data().array() *= solved.kx.data().array();  // W z and K W z
  Panels some(z.n(), z.width(), Panels::Unset());
  preconditioner.apply(z, some, parallel);  // G G'W_0 z = z - ridge W_0 z
  rest.data().array() -= some.data().array() * (z.data() - ridge * some.data()).array();
  weighted.apply(z, some, parallel);
  rest.data().array() -= scale * z.data().array() * some.data().array();
  preconditioner.apply_factor(z, some, parallel);
  rest.data().array() += scale * z.data().array() * some.data().array();
  return rest;
}

// sum_i weights_i rest_ik for every probe k
Vector weigh(const Panels& rest, const Vector& weights) {
  Vector sums = Vector::Zero(rest.width());
  for (Index i = 0; i < rest.count(); ++i)
    sums +=
        rest.panel(i).topRows(rest.rows(i)).transpose() * weights.segment(i * kPanel, rest.rows(i));
  return sums;
}

// From a factor of at most n / 4 columns that misses at most kSmallShare of the term, if there is
// one. O(n rank^2)
bool terms_of_small_factor(const Gram& gram, const RowNorms& rows, const Vector& w, double ridge,
                           Preconditioner& preconditioner, Solution& solution, Parallel& parallel) {
  const double n = static_cast<double>(w.size());
  const auto missed = [&](const Vector& norms, double& scale) {
    const Vector e_ii = preconditioner.factor().residual().cwiseProduct(w);
    const double root = ridge + e_ii.sum() / n;
    scale = 1.0 / (root * root);
    return scale * e_ii.dot(norms);
  };
  double scale;
  const double first = preconditioner.diagonal(parallel).dot(rows.norms);
  const auto few = [&] { return missed(rows.norms, scale) <= kSmallShare * first; };
  if (!preconditioner.extend_until(gram, w.size() / 4, few, parallel)) return false;
  const Vector a_ii = preconditioner.diagonal(parallel);
  solution.debias_rank = preconditioner.factor().d();
  solution.debias_error = missed(rows.norms, scale);
  solution.debias = a_ii.dot(rows.norms) + solution.debias_error;
  solution.floor = a_ii.dot(rows.spreads) + missed(rows.spreads, scale);
  return true;
}

}  // namespace

void add_diagonal_terms(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                        const LabelKernel& label, double ridge, Preconditioner& preconditioner,
                        Solution& solution, Parallel& parallel) {
  const Index n = samples.n();
  const RowNorms rows(samples, gram.points.q, label);
  const Vector w = weights_of(samples, 0, n);
  if (n <= kFactorisationLimit) {
    if (n > kExactRows && !samples.groups &&
        terms_of_small_factor(gram, rows, w, ridge, preconditioner, solution, parallel))
      return;
    add_gram_terms(whole_gram(gram, parallel), samples, label, ridge, solution, parallel);
    solution.debias_rank = n;
    return;
  }
  const double form = samples.groups ? w.dot(within_groups(gram, samples, label, parallel)) : 0.0;
  const Index most = std::min(
      {n <= kFewRows ? kLargestRank : std::max<Index>(512, 2 * samples.m()), kLargestRank, n});
  const Panels z = probes(samples, gram.points.q, label);
  for (;;) {
    const Cholesky& factor = preconditioner.factor();
    const Vector e_ii = factor.residual().cwiseProduct(w);
    const double root = ridge + e_ii.sum() / static_cast<double>(n);
    const double scale = 1.0 / (root * root);
    solution.debias_rank = factor.d();
    double left;
    if (samples.groups) {
      solution.debias = debias_by_group(factor, samples, label, preconditioner.solver(), parallel);
      solution.floor = kNoFloor;
      left = form - w.dot(within_groups(factor, samples, label, parallel));
    } else {
      const Vector a_ii = preconditioner.diagonal(parallel);
      solution.debias = a_ii.dot(rows.norms);
      solution.floor = a_ii.dot(rows.spreads) + scale * e_ii.dot(rows.spreads);
      left = e_ii.dot(rows.norms);
    }
    const double missed = scale * std::max(left, 0.0);
    solution.debias += missed;
    solution.debias_error = missed;
    if (missed <= kDebiasShare * solution.debias || factor.exhausted()) return;

    if (const auto rest = rest_of_probes(weighted, preconditioner, z, ridge, scale, parallel)) {
      const Mean debias(weigh(*rest, samples.groups ? Vector::Ones(n) : rows.norms));
      const Mean floor(weigh(*rest, rows.spreads));
      solution.debias += debias.value;
      solution.floor += floor.value;
      solution.debias_error = samples.groups ? debias.error : std::max(debias.error, floor.error);
    }
    if (solution.debias_error <= kDebiasShare * solution.debias || factor.d() >= most) return;
    preconditioner.extend(gram, std::min(std::max<Index>(2 * factor.d(), 128), most), 0.0,
                          parallel);
  }
}

}  // namespace ckce
