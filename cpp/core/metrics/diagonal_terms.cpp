// With K = G G' + E and W_0 = (G G' + ridge I)^-1, A_ii is split into three parts:
//   |(G'G + ridge I)^-1 g_i|^2  of the factor of low rank,
//   scale E_ii                  to first order in E, scale = 1 / (ridge + tr E / n)^2,
//   the rest                    in the mean over probes z of random signs: E[(W z)_i (K W z)_i] is
//                               A_ii, and the same z serve for the two parts that are known, so
//                               that only what is left of them is noise.
// Where a factorisation is at hand and more is asked for, all that E changes to first order is the
// second part, see diagonal.hpp.
// Of samples in groups the same with sum_g Tr R_g'A_gg R_g, and probes with E[z z'] = R_g R_g'.
#include "core/metrics/diagonal_terms.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/random.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/diagonal.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

constexpr Index kProbes = 16;
constexpr Index kFewRows = 8192;  // up to which a factor of all that may be needed is small
constexpr Index kLargestRank = 4096;
constexpr Index kProbeProducts = 20;  // of their solution: above, more columns cost less

// Where a factorisation is at hand, a factor must leave less to be used: with five standard errors
// of 16 probes one of 6,000 terms is farther off.
constexpr double kSmallShare = 1e-5;
constexpr double kSmallErrors = 5.0;
constexpr double kFirstTry = 5.5e-3;  // tr E / ridge
constexpr double kFar = 16.0;         // times what is wanted, and more columns will not do
constexpr Index kLeading = 48;        // columns of the small space of FirstOrder
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

// A sum over the rows in the mean over probes, and some standard errors of that mean.
struct Mean {
  double value;
  double error;

  explicit Mean(const Vector& sums, double errors = 3.0) : value(sums.mean()) {
    const double n = static_cast<double>(sums.size());
    error = errors * std::sqrt((sums.array() - value).square().sum() / (n * (n - 1.0)));
  }
};

// z_i (A - A_0) z_i, row by row. After the last product with K the preconditioner takes one more
// step, to which G G' is K: what is left then is in the ratio of the steps before. None if that
// takes too many products. (n, kProbes)
std::optional<Panels> beyond_factor(const WeightedGram& weighted,
                                    const Preconditioner& preconditioner, const Panels& z,
                                    double ridge, Parallel& parallel) {
  const double norm = z.data().norm();
  double before = norm;
  const ConjugateGradients solved(
      weighted, preconditioner, z, ridge, parallel,
      [&](const auto& cg) {
        const double left = cg.rest.data().norm();
        const double next = left * std::min(left / before, 1.0);
        before = left;
        return cg.iterations > 0 && next <= 1e-7 * norm;
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
  return rest;
}

// scale E z
Panels times_e(const WeightedGram& weighted, const Preconditioner& preconditioner, const Panels& z,
               double scale, Parallel& parallel) {
  Panels ez(z.n(), z.width(), Panels::Unset());
  Panels low(z.n(), z.width(), Panels::Unset());
  weighted.apply(z, ez, parallel);
  preconditioner.apply_factor(z, low, parallel);
  ez.data() = scale * (ez.data() - low.data());
  return ez;
}

// sum_i weights_i rest_ik for every probe k
Vector weigh(const Panels& rest, const Vector& weights) {
  Vector sums = Vector::Zero(rest.width());
  for (Index i = 0; i < rest.count(); ++i)
    sums +=
        rest.panel(i).topRows(rest.rows(i)).transpose() * weights.segment(i * kPanel, rest.rows(i));
  return sums;
}

// From a factor of at most 3 n / 10 columns, with all of the first order and the rest in the mean
// over probes, if that is right to kSmallShare: what is not known is near tr E / ridge of what the
// factor misses. O(n rank^2) and three products with K, at most kMostTries times.
bool terms_to_first_order(const Gram& gram, const WeightedGram& weighted, const RowNorms& rows,
                          const Vector& w, const Panels& z, double ridge,
                          Preconditioner& preconditioner, Solution& solution, Parallel& parallel) {
  const auto missed = [&] { return preconditioner.factor().residual().dot(w); };  // tr E
  // Where rows nearly repeat, all probes may be off alike, by up to 3e-6 (4 of 180 problems of
  // studies/bounds.py): no error below half of kSmallShare is printed.
  const auto accept = [&] {
    solution.debias_error = std::max(solution.debias_error, 0.5 * kSmallShare * solution.debias);
    return true;
  };
  double most = kFirstTry * ridge;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto few = [&] { return missed() <= most; };
    if (missed() > kFar * most ||
        !preconditioner.extend_until(gram, 3 * w.size() / 10, few, parallel))
      return false;
    const Vector e_ii = preconditioner.factor().residual().cwiseProduct(w);
    const Vector plain = preconditioner.diagonal(parallel);
    solution.debias_rank = preconditioner.factor().d();
    solution.debias_error = e_ii.dot(rows.norms) / (ridge * ridge);
    solution.debias = plain.dot(rows.norms) + solution.debias_error;
    solution.floor = plain.dot(rows.spreads) + e_ii.dot(rows.spreads) / (ridge * ridge);
    const double enough = kSmallShare * solution.debias;
    if (solution.debias_error <= enough) return accept();

    auto rest = beyond_factor(weighted, preconditioner, z, ridge, parallel);
    if (!rest) return false;
    const FirstOrder first(weighted, preconditioner, kLeading, z, ridge, parallel);
    rest->data().array() -= z.data().array() * first.apply().data().array();
    const Vector a_ii = plain + first.diagonal(e_ii);
    const Mean debias(weigh(*rest, rows.norms), kSmallErrors);
    const Mean floor(weigh(*rest, rows.spreads), kSmallErrors);
    solution.debias = a_ii.dot(rows.norms) + debias.value;
    solution.floor = a_ii.dot(rows.spreads) + floor.value;
    solution.debias_error = std::max(debias.error, floor.error);
    if (solution.debias_error <= enough) return accept();
    most = 0.7 * e_ii.sum() * enough / solution.debias_error;
  }
  return false;
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
        terms_to_first_order(gram, weighted, rows, w, probes(samples, gram.points.q, label), ridge,
                             preconditioner, solution, parallel))
      return;
    add_gram_terms(whole_gram(gram, parallel), samples, label, ridge, solution, parallel);
    solution.debias_rank = n;
    solution.debias_error = 0.0;
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

    if (auto rest = beyond_factor(weighted, preconditioner, z, ridge, parallel)) {
      rest->data().array() -=
          z.data().array() * times_e(weighted, preconditioner, z, scale, parallel).data().array();
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
