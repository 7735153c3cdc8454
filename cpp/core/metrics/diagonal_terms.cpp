#include "core/metrics/diagonal_terms.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/random.hpp"
#include "core/features/cholesky.hpp"
#include "core/metrics/ckce_parts.hpp"
#include "core/metrics/preconditioner.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

constexpr Index kProbedRank = 512;  // of the factor whose rest probes find
constexpr Index kProbes = 8;        // for each of the two terms
constexpr double kQuantile = 3.5;   // of Student's t with kProbes - 1 degrees of freedom, 99 %
constexpr Index kFewRows = 8192;    // up to which a factor of all that may be needed is small
constexpr Index kLargestRank = 4096;

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

// Columns b with random signs s and the mean of b'A b known: b_i = s_i |r_i|, then b_i = s_i
// sqrt(E|r_i|^2); of samples in groups b_i = sqrt(w_i) <r_i F, s_g>, s_g a sign for each column of
// F: E b b' has the blocks R_g R_g' on its diagonal.
Panels draw_probes(const Gram& gram, const Samples& samples, const LabelKernel& label,
                   const RowNorms& rows) {
  SplitMix64 random(0);
  const auto sign = [&] { return (random.bits() >> 63) != 0 ? 1.0 : -1.0; };
  Panels b(samples.n(), samples.groups ? kProbes : 2 * kProbes);
  if (!samples.groups) {
    for (Index i = 0; i < samples.n(); ++i) {
      const double norm = std::sqrt(rows.norms[i]);
      const double spread = std::sqrt(std::max(rows.spreads[i], 0.0));
      for (Index p = 0; p < kProbes; ++p) {
        const double s = sign();
        b.row(i)[p] = s * norm;
        b.row(i)[kProbes + p] = s * spread;
      }
    }
    return b;
  }
  const Panels r =
      residual_panels(samples, gram.points.q, label, [](double w) { return std::sqrt(w); });
  Matrix signs(r.width(), kProbes);
  for (Index g = 0; g < samples.groups->count(); ++g) {
    for (Index p = 0; p < kProbes; ++p)
      for (Index j = 0; j < r.width(); ++j) signs(j, p) = sign();
    for (const Index i : samples.groups->rows(g)) b.row(i) = r.row(i) * signs;
  }
  return b;
}

Vector column_sums(const Panels& a, const Panels& b) {
  Vector sums = Vector::Zero(a.width());
  for (Index i = 0; i < a.count(); ++i)
    sums += a.panel(i).cwiseProduct(b.panel(i)).colwise().sum().transpose();
  return sums;
}

// The mean of some probes, and about the most that it can be off.
struct Found {
  double mean;
  double error;

  explicit Found(const Vector& probes)
      : mean(probes.mean()),
        error(kQuantile * std::sqrt((probes.array() - mean).square().sum() /
                                    static_cast<double>(kProbes * (kProbes - 1)))) {}
};

// What the factor and E / ridge^2 leave of b'A b, column by column, and whether the solve came to
// its end: b'A b - |(G'G + ridge I)^-1 G'b|^2 - b'E b / ridge^2, E = K - G G'.
bool probe(const Cholesky& factor, const Gram& gram, const WeightedGram& weighted,
           const Samples& samples, const Panels& b, double ridge, Vector& left,
           Parallel& parallel) {
  const Preconditioner preconditioner(factor, gram.points, samples, ridge, parallel);
  const double b_norm = b.data().norm();
  const ConjugateGradients v(weighted, preconditioner, b, ridge, parallel, [&](const auto& cg) {
    return cg.rest.data().norm() <= 1e-9 * b_norm;
  });
  Panels kb(b.n(), b.width(), Panels::Unset());
  weighted.apply(b, kb, parallel);
  Matrix x = preconditioner.project(b, parallel);
  const Vector e_form = column_sums(b, kb) - x.colwise().squaredNorm().transpose();
  preconditioner.solve(x, parallel);
  left = column_sums(v.x, v.kx) - x.colwise().squaredNorm().transpose() - e_form / (ridge * ridge);
  return v.done;
}

}  // namespace

// What A misses is E / ridge^2 to first order in E; that is added.
void add_diagonal_terms(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                        const LabelKernel& label, double ridge, bool easy, Solution& solution,
                        Parallel& parallel) {
  Cholesky factor(gram, Pivoting::kRandom, 0, parallel);
  const RowNorms rows(samples, gram.points.q, label);
  const Vector w = weights_of(samples, 0, samples.n());
  const double form = samples.groups ? w.dot(within_groups(gram, samples, label, parallel)) : 0.0;
  const Index probed = std::max(kProbedRank, 2 * samples.m());
  const Index most =
      std::min({samples.n() <= kFewRows ? kLargestRank : probed, kLargestRank, samples.n()});
  for (Index rank = 128;; rank *= 2) {
    factor.extend(gram, std::min(rank, most), 0.0, parallel);
    const Vector residual = factor.residual().cwiseProduct(w);
    const Solution low_rank =
        ckce_features(factor, samples, label, ridge, Precision::kFloat64, true, parallel, false);
    const double left = samples.groups
                            ? form - w.dot(within_groups(factor, samples, label, parallel))
                            : residual.dot(rows.norms);
    const double missed = std::max(left, 0.0) / (ridge * ridge);
    solution.debias = low_rank.debias + missed;
    solution.floor = low_rank.floor + residual.dot(rows.spreads) / (ridge * ridge);
    solution.debias_rank = factor.d();
    solution.debias_error = missed;
    if (missed <= kDebiasShare * solution.debias || factor.exhausted()) return;
    if (easy && rank >= std::min(probed, most)) {
      easy = false;  // once
      const Panels b = draw_probes(gram, samples, label, rows);
      Vector rest;
      if (probe(factor, gram, weighted, samples, b, ridge, rest, parallel)) {
        const Found debias(rest.head(kProbes));
        const Found floor(samples.groups ? rest : rest.tail(kProbes));
        if (debias.error <= kDebiasShare * std::abs(solution.debias + debias.mean) ||
            factor.d() >= most) {
          solution.debias += debias.mean;
          solution.floor += floor.mean;
          solution.debias_error = std::min(missed, std::max(debias.error, floor.error));
          return;
        }
      }
    }
    if (factor.d() >= most) return;
  }
}

}  // namespace ckce
