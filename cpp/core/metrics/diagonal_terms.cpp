// With K = G G' + E and W_0 = (G G' + ridge I)^-1, A_ii is split into three parts:
//   |(G'G + ridge I)^-1 g_i|^2  of the factor of low rank,
//   C_ii                        what E changes to first order, see diagonal.hpp,
//   the rest                    in the mean over probes z of random signs: E[(W z)_i (K W z)_i] is
//                               A_ii, and the same z serve for the two parts that are known, so
//                               that only what is left of them is noise.
// C may be of any ridge: ridge + tr E / n is nearer to what the rest is where E is large.
// Of samples in groups the same with sum_g Tr R_g'A_gg R_g, and probes with E[z z'] = R_g R_g'; C
// is E / ridge^2 there.
#include "core/metrics/diagonal_terms.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/random.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/diagonal.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

constexpr Index kProbes = 16;
constexpr Index kGramRows = 4096;  // up to which a factorisation serves where a factor does not
constexpr Index kFewRows = 8192;   // up to which n / 3 columns are few
constexpr Index kLargestRank = 2048;
constexpr Index kProbeProducts = 20;  // of their solution: above, more columns cost less
constexpr double kErrors = 3.0;       // standard errors of the mean over probes
// With C = E / ridge^2 the noise is near 1/100 of that: it will do up to here times what is
// allowed.
constexpr double kPlainShare = 20.0;
constexpr Index kMostLeading = 128;  // columns of the small space of FirstOrder

// Where a factorisation is at hand, a factor must leave less to be used: with five standard errors
// of 16 probes one of 6,000 terms is farther off.
constexpr double kSmallShare = 1e-5;
constexpr double kSmallErrors = 5.0;
constexpr double kFirstTry = 5.5e-3;  // tr E / ridge
constexpr double kFar = 16.0;         // times what is wanted, and more columns will not do
constexpr int kMostTries = 2;
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

// A sum over the rows in the mean over probes, and so many standard errors of that mean.
struct Mean {
  double value;
  double error;

  Mean(const Vector& sums, double errors) : value(sums.mean()) {
    const double n = static_cast<double>(sums.size());
    error = errors * std::sqrt((sums.array() - value).square().sum() / (n * (n - 1.0)));
  }
};

// z_i (A - A_0) z_i, row by row, (n, kProbes), and about how far their sums may be off.
struct Beyond {
  Panels rest;
  double error;
};

// `missed` is what E changes to first order. Every product with K leaves |E| / ridge of what was
// left before: the steps show that share from the second on, and the first, of random signs, shows
// |E|_F / (sqrt(n) ridge). After the last product the preconditioner takes one more step, to which
// G G' is K. None if it takes too many products until at most `most` is left.
std::optional<Beyond> beyond_factor(const WeightedGram& weighted,
                                    const Preconditioner& preconditioner, const Panels& z,
                                    double ridge, double missed, double most, Parallel& parallel) {
  const double root_n = std::sqrt(static_cast<double>(z.n()));
  double before = z.data().norm();
  double first = 0.0;
  double share = 0.0;
  double error = missed;
  const ConjugateGradients solved(
      weighted, preconditioner, z, ridge, parallel,
      [&](const auto& cg) {
        if (cg.iterations == 0) return false;
        const double left = cg.rest.data().norm();
        if (cg.iterations == 1) {
          first = left;
          error = missed * std::min(root_n * left / before, 1.0);
        } else {
          share = std::min(std::max(share, left / before), 1.0);
          error = missed * share * left / first;
        }
        before = left;
        return error <= most;
      },
      kProbeProducts);
  if (!solved.done) return std::nullopt;
  Panels some(z.n(), z.width(), Panels::Unset());
  preconditioner.apply(solved.rest, some, parallel);
  Panels rest = solved.x;
  rest.data() += some.data();  // W z, times K W z
  rest.data().array() *= (solved.kx.data() + solved.rest.data() - ridge * some.data()).array();
  preconditioner.apply(z, some, parallel);  // G G'W_0 z = z - ridge W_0 z
  rest.data().array() -= some.data().array() * (z.data() - ridge * some.data()).array();
  return Beyond{std::move(rest), error};
}

// E z / root^2
Panels times_e(const WeightedGram& weighted, const Preconditioner& preconditioner, const Panels& z,
               double root, Parallel& parallel) {
  Panels ez(z.n(), z.width(), Panels::Unset());
  Panels low(z.n(), z.width(), Panels::Unset());
  weighted.apply(z, ez, parallel);
  preconditioner.apply_factor(z, low, parallel);
  ez.data() = (ez.data() - low.data()) / (root * root);
  return ez;
}

// rest_ik -= z_ik (C z)_ik
void subtract_forms(Panels& rest, const Panels& z, const Panels& cz) {
  rest.data().array() -= z.data().array() * cz.data().array();
}

// sum_i weights_i rest_ik for every probe k
Vector weigh(const Panels& rest, const Vector& weights) {
  Vector sums = Vector::Zero(rest.width());
  for (Index i = 0; i < rest.count(); ++i)
    sums +=
        rest.panel(i).topRows(rest.rows(i)).transpose() * weights.segment(i * kPanel, rest.rows(i));
  return sums;
}

// Debias term and floor from the factor as it is. True if they are right to `share` of the term, in
// so many standard errors of the mean over probes. O(n rank^2) and three products with K, at least.
bool add_terms(const WeightedGram& weighted, const Samples& samples, const RowNorms& rows,
               const Panels& z, double ridge, double share, double errors,
               const Preconditioner& preconditioner, Solution& solution, Parallel& parallel) {
  const Cholesky& factor = preconditioner.factor();
  const Vector e_ii = factor.residual().cwiseProduct(weights_of(samples, 0, samples.n()));
  const double root = ridge + e_ii.mean();
  const Vector plain = preconditioner.diagonal(parallel);
  const Vector a_ii = plain + e_ii / (root * root);
  const double missed = e_ii.dot(rows.norms.cwiseMax(rows.spreads)) / (root * root);
  solution.debias_rank = factor.d();
  solution.debias = a_ii.dot(rows.norms);
  solution.floor = a_ii.dot(rows.spreads);
  solution.debias_error = missed;
  const double enough = share * solution.debias;
  if (missed <= enough || factor.exhausted()) return missed <= enough;

  auto beyond = beyond_factor(weighted, preconditioner, z, ridge, missed, 0.1 * enough, parallel);
  if (!beyond) return false;
  Vector known = a_ii;
  if (missed <= kPlainShare * enough) {
    subtract_forms(beyond->rest, z, times_e(weighted, preconditioner, z, root, parallel));
  } else {
    const Index leading = std::min(32 + 3 * samples.m() / 4, kMostLeading);
    const FirstOrder first(weighted, preconditioner, leading, z, root, parallel);
    subtract_forms(beyond->rest, z, first.apply());
    known = plain + first.diagonal(e_ii);
  }
  const Mean debias(weigh(beyond->rest, rows.norms), errors);
  const Mean floor(weigh(beyond->rest, rows.spreads), errors);
  solution.debias = known.dot(rows.norms) + debias.value;
  solution.floor = known.dot(rows.spreads) + floor.value;
  solution.debias_error = std::max(debias.error, floor.error) + beyond->error;
  return solution.debias_error <= enough;
}

// The same of samples in groups; `form` is sum_g Tr R_g'K_gg R_g.
bool add_group_term(const WeightedGram& weighted, const Samples& samples, const LabelKernel& label,
                    double form, const Panels& z, double ridge,
                    const Preconditioner& preconditioner, Solution& solution, Parallel& parallel) {
  const Cholesky& factor = preconditioner.factor();
  const Vector w = weights_of(samples, 0, samples.n());
  const double e = factor.residual().dot(w);
  const double root = ridge + e / static_cast<double>(samples.n());
  const double scale = 1.0 / (root * root);
  const double left = form - w.dot(within_groups(factor, samples, label, parallel));
  const double missed = scale * std::max(left, 0.0);
  solution.debias_rank = factor.d();
  solution.debias =
      debias_by_group(factor, samples, label, preconditioner.solver(), parallel) + missed;
  solution.floor = kNoFloor;
  solution.debias_error = missed;
  const double enough = kDebiasShare * solution.debias;
  if (missed <= enough || factor.exhausted()) return missed <= enough;

  auto beyond = beyond_factor(weighted, preconditioner, z, ridge, missed, 0.1 * enough, parallel);
  if (!beyond) return false;
  subtract_forms(beyond->rest, z, times_e(weighted, preconditioner, z, root, parallel));
  const Mean debias(weigh(beyond->rest, Vector::Ones(samples.n())), kErrors);
  solution.debias += debias.value;
  solution.debias_error = debias.error + beyond->error;
  return solution.debias_error <= enough;
}

// From a factor of at most 3 n / 10 columns, if that is right to kSmallShare: what is not known is
// near tr E / ridge of what the factor misses. At most kMostTries times add_terms.
bool add_small_terms(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                     const LabelKernel& label, const RowNorms& rows, double ridge,
                     Preconditioner& preconditioner, Solution& solution, Parallel& parallel) {
  const Panels z = probes(samples, gram.points.q, label);
  const Vector w = weights_of(samples, 0, samples.n());
  const auto missed = [&] { return preconditioner.factor().residual().dot(w); };  // tr E
  double most = kFirstTry * ridge;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto few = [&] { return missed() <= most; };
    if (missed() > kFar * most ||
        !preconditioner.extend_until(gram, 3 * w.size() / 10, few, parallel))
      return false;
    if (add_terms(weighted, samples, rows, z, ridge, kSmallShare, kSmallErrors, preconditioner,
                  solution, parallel))
      return true;
    most = 0.7 * missed() * kSmallShare * solution.debias / solution.debias_error;
  }
  return false;
}

}  // namespace

void add_diagonal_terms(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                        const LabelKernel& label, double ridge, Preconditioner& preconditioner,
                        Solution& solution, Parallel& parallel) {
  const Index n = samples.n();
  const RowNorms rows(samples, gram.points.q, label);
  const auto by_factorisation = [&] {
    add_gram_terms(whole_gram(gram, parallel), samples, label, ridge, solution, parallel);
    solution.debias_rank = n;
    solution.debias_error = 0.0;
  };
  if (n <= kFactorisationLimit) {
    if (n <= kExactRows || samples.groups ||
        !add_small_terms(gram, weighted, samples, label, rows, ridge, preconditioner, solution,
                         parallel))
      by_factorisation();
    return;
  }
  const Panels z = probes(samples, gram.points.q, label);
  const double form =
      samples.groups ? weights_of(samples, 0, n).dot(within_groups(gram, samples, label, parallel))
                     : 0.0;
  const Index most =
      std::min(n <= kFewRows ? n / 3 : std::max<Index>(512, 2 * samples.m()), kLargestRank);
  const Cholesky& factor = preconditioner.factor();
  for (;;) {
    const bool right = samples.groups ? add_group_term(weighted, samples, label, form, z, ridge,
                                                       preconditioner, solution, parallel)
                                      : add_terms(weighted, samples, rows, z, ridge, kDebiasShare,
                                                  kErrors, preconditioner, solution, parallel);
    if (right || factor.exhausted()) return;
    if (factor.d() >= most) break;
    const Index next = std::max<Index>(2 * factor.d(), 128);
    preconditioner.extend(gram, 5 * next >= 4 * most ? most : next, 0.0, parallel);
  }
  if (n <= kGramRows) by_factorisation();
}

}  // namespace ckce
