#include "core/binary/resample_binary.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

#include "core/base/random.hpp"
#include "core/binary/cell_problem.hpp"
#include "core/binary/cell_rows.hpp"
#include "core/binary/row_forms.hpp"

namespace ckce {
namespace {

// A block of rows as a resample reads it.
class Rows {
 public:
  Rows(const CellProblem& problem, const CellSums& sums, const RowForms& diagonal)
      : problem_(problem),
        sums_(sums),
        diagonal_(diagonal),
        rows_(problem.kernel().grid()),
        first_(as_size(kBlock)),
        width_(as_size(kBlock)),
        polynomials_(2 * problem.kernel().nodes() - 1, kBlock),
        share_(kBlock),
        a_ii_(kBlock),
        k_ii_(kBlock) {
    for (Index c = 0; c < problem.kernel().count(); ++c)
      index_.emplace(problem.kernel().cell(c), c);
  }

  void load(const Samples& samples, Index block) {
    rows_.load(samples, block);
    rows_.each_cell([&](std::int64_t cell, Index first, Index last) {
      const auto found = index_.find(cell);
      for (Index i = first; i < last; ++i)
        place(rows_.row(i), found == index_.end() ? -1 : found->second);
    });
  }

  Index count() const { return rows_.rows; }
  Index begin() const { return rows_.begin; }
  bool draw(Index i, double u) const { return share_[i] <= u; }

  // to += r a_i, or r at the row's point, whose polynomials are T_0 = 1 alone
  void add(Index i, double r, double* to) const {
    to += first_[as_size(i)];
    for (Index j = 0; j < width_[as_size(i)]; ++j) to[j] += r * polynomials_(j, i);
  }
  double p(Index i) const { return rows_.p[i]; }
  double a_ii(Index i) const { return a_ii_[i]; }
  double k_ii(Index i) const { return k_ii_[i]; }

 private:
  void place(Index i, Index c) {
    const double p = rows_.p[i];
    const CellKernel& kernel = problem_.kernel();
    share_[i] = p > 0.0 ? 1.0 - p : std::numeric_limits<double>::infinity();
    k_ii_[i] = 1.0 + (kernel.linear() ? p * p + (1.0 - p) * (1.0 - p) : 0.0);
    a_ii_[i] = 0.0;
    first_[as_size(i)] = width_[as_size(i)] = 0;
    if (c < 0) return;
    if (problem_.dense(c)) {
      chebyshev(rows_.t(i), polynomials_.rows(), polynomials_.col(i).data());
      first_[as_size(i)] = problem_.begin(c);
      width_[as_size(i)] = kernel.nodes();
      a_ii_[i] = diagonal_.series.col(c).dot(polynomials_.col(i));
      return;
    }
    const auto& points = sums_.cell(kernel.slot(c)).points;
    for (std::size_t j = 0; j < points.size(); ++j)
      if (points[j].p == p) {
        first_[as_size(i)] = problem_.begin(c) + static_cast<Index>(j);
        width_[as_size(i)] = 1;
        polynomials_(0, i) = 1.0;
        a_ii_[i] = diagonal_.points[first_[as_size(i)]];
      }
  }

  const CellProblem& problem_;
  const CellSums& sums_;
  const RowForms& diagonal_;
  CellRows rows_;
  std::unordered_map<std::int64_t, Index> index_;
  std::vector<Index> first_, width_;  // of a row's unknowns; no width in a cell that is unknown
  Matrix polynomials_;
  Vector share_, a_ii_, k_ii_;
};

struct Resample {
  SplitMix64 random;
  bool given;
  double a_diagonal = 0.0;  // sum_i A_ii r_i^2
  double k_diagonal = 0.0;  // sum_i k_ii r_i^2
};

}  // namespace

Matrix resample_binary(const Grid& grid, const Samples& weighted, bool linear, double ridge,
                       Index n_resamples, std::uint64_t seed, Index table, Parallel& parallel) {
  Samples samples = weighted;
  samples.weights = nullptr;
  const auto n = static_cast<double>(samples.n());
  parallel.span(0.0, 0.02);
  CellSums sums(grid, Depth::kEstimate);
  sums.add(samples, parallel);
  const CellProblem problem(sums, linear, ridge, parallel);
  RowForms diagonal(problem);  // a_i'H a_i
  problem.each_diagonal([&](Index c, const Matrix& p) { diagonal.set(problem, sums, c, p); },
                        parallel);
  Rows rows(problem, sums, diagonal);

  std::vector<Resample> resamples;
  SplitMix64 seeds(seed);
  for (Index b = 0; b <= n_resamples; ++b)
    resamples.push_back({SplitMix64(b == 0 ? 0 : seeds.bits()), b == 0});
  const Index total = n_resamples + 1;
  const Index per_round =
      std::clamp<Index>(table / std::max<Index>(problem.rank(), 1), 1, std::min(total, kTestSets));
  const Index blocks = (samples.n() + kBlock - 1) / kBlock;
  Matrix statistics(total, 3);
  for (Index first = 0; first < total; first += per_round) {
    const Index count = std::min(per_round, total - first);
    Matrix b(problem.rank(), count);
    const auto done = [&](double share) {
      return 0.02 + 0.98 * (static_cast<double>(first) + share * static_cast<double>(count)) /
                        static_cast<double>(total);
    };
    for (Index block = 0; block < blocks; ++block) {
      const double at_block = done(0.7 * static_cast<double>(block) / static_cast<double>(blocks));
      parallel.span(at_block, at_block);
      rows.load(samples, block);
      parallel.each_striped(count, 1, [&](Index k) {
        if (block == 0) b.col(k).setZero();
        Resample& resample = resamples[as_size(first + k)];
        for (Index i = 0; i < rows.count(); ++i) {
          const bool y = resample.given ? samples.labels[rows.begin() + i] == 1
                                        : rows.draw(i, resample.random.uniform());
          const double r = (y ? 1.0 : 0.0) - rows.p(i);
          rows.add(i, r, b.col(k).data());
          resample.a_diagonal += rows.a_ii(i) * r * r;
          resample.k_diagonal += rows.k_ii(i) * r * r;
        }
      });
    }
    parallel.span(done(0.7), done(1.0));
    parallel.each_striped(count, 1, [&](Index k) {
      Parallel alone;
      problem.compress(b.col(k));
      const Resample& resample = resamples[as_size(first + k)];
      const double value = problem.form(problem.solve(b.col(k), alone), alone);
      statistics.row(first + k) << 2.0 * value, 2.0 * (value - resample.a_diagonal),
          2.0 * (problem.form(b.col(k), alone) - resample.k_diagonal) / (n * (n - 1.0));
    });
  }
  return statistics;
}

}  // namespace ckce
