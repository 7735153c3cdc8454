#include "core/metrics/calibration_test.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/random.hpp"
#include "core/features/block.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/stream/moments.hpp"

namespace ckce {
namespace {

// Rows begin .. begin + count of all that drawing and adding needs.
class Rows {
 public:
  Rows(const Features& features, const Samples& samples, const RidgeSolver& solver, bool with_t,
       Index at_once)
      : features_(features),
        samples_(samples),
        solver_(solver),
        with_t_(with_t),
        at_once_(at_once),
        half_(count_pieces(features.d(), kLanes) * kLanes),
        both_(Matrix::Zero(with_t ? 2 * half_ : half_, at_once)),
        q_(samples.m(), at_once),
        sums_(samples.m(), at_once),
        squares_(at_once),
        phi_norms_(at_once),
        t_norms_(at_once) {}

  void load(Index begin, Parallel& parallel) {
    begin_ = begin;
    count_ = std::min(at_once_, samples_.n() - begin);
    parallel.each_striped(count_pieces(count_, kPanel), 1, [&](Index i) { load_panel(i); });
  }

  bool with_t() const { return with_t_; }
  Index at_once() const { return at_once_; }
  Index half() const { return half_; }
  Index width() const { return both_.rows(); }
  Index count() const { return count_; }
  std::int64_t label(Index i) const { return samples_.labels[begin_ + i]; }
  auto both() const { return both_.leftCols(count_); }  // columns phi_i or [phi_i, t_i]
  auto q() const { return q_.leftCols(count_); }
  const double* data() const { return both_.data(); }
  // |phi_i|^2 |r_i|^2 and |t_i|^2 |r_i|^2 if the label is y
  std::pair<double, double> diagonal(Index i, Index y) const {
    const double r = 1.0 + squares_[i] - 2.0 * q_(y, i);
    return {phi_norms_[i] * r, t_norms_[i] * r};
  }

  // The class in which the share u of the row's probability falls, never one of probability 0.
  Index draw(Index i, double u) const {
    const double* sums = sums_.col(i).data();
    const Index m = sums_.rows();
    if (m > kManyDraws) return std::upper_bound(sums, sums + m, u) - sums;
    Index y = 0;
    for (Index j = 0; j < m; ++j) y += sums[j] <= u;
    return y;
  }

 private:
  void load_panel(Index panel) {
    const Index first = panel * kPanel;
    Block<double> block(features_, kPanel);
    block.load(samples_, begin_ + first);
    const Index rows = block.rows;
    Matrix t = block.phi().transpose();
    both_.block(0, first, features_.d(), rows) = t;
    phi_norms_.segment(first, rows) = t.colwise().squaredNorm().transpose();
    solver_.solve(t);
    if (with_t_) both_.block(half_, first, features_.d(), rows) = t;
    t_norms_.segment(first, rows) = t.colwise().squaredNorm().transpose();
    q_.middleCols(first, rows) = block.q().transpose();
    squares_.segment(first, rows) = block.q().rowwise().squaredNorm();
    for (Index i = first; i < first + rows; ++i) accumulate(i);
  }

  // Shares of the row's sum; from the last positive entry on infinite, so that u = 1 stays inside.
  void accumulate(Index i) {
    double* sums = sums_.col(i).data();
    const Index m = q_.rows();
    double sum = 0.0;
    for (Index j = 0; j < m; ++j) sums[j] = (sum += q_(j, i));
    for (Index j = 0; j < m; ++j) sums[j] /= sum;
    Index last = m - 1;
    while (q_(last, i) <= 0.0) --last;
    std::fill(sums + last, sums + m, std::numeric_limits<double>::infinity());
  }

  const Features& features_;
  const Samples& samples_;
  const RidgeSolver& solver_;
  bool with_t_;
  Index at_once_;
  Index half_;      // d, padded to whole lanes
  Matrix both_;     // (half or 2 half, at_once)
  Matrix q_;        // (m, at_once)
  Matrix sums_;     // (m, at_once), cumulative
  Vector squares_;  // |q_i|^2
  Vector phi_norms_;
  Vector t_norms_;
  Index begin_ = 0;
  Index count_ = 0;
};

// One set of labels: the given ones, or a stream of draws.
struct Resample {
  SplitMix64 random;
  bool given;
  double phi_diagonal = 0.0;  // sum_i |phi_i|^2 |r_i|^2
  double t_diagonal = 0.0;
};

// to += the sum of the columns `rows` of a matrix, in registers for a few lanes at a time
template <int kCount>
void add_columns(const double* columns, Index stride, const std::vector<Index>& rows, Index first,
                 Index last, double* to) {
  Lanes sums[kCount];
  for (Lanes& sum : sums) sum.setZero();
  for (Index k = first; k < last; ++k) {
    const double* from = columns + rows[as_size(k)] * stride;
    for (int c = 0; c < kCount; ++c) sums[c] += Eigen::Map<const Lanes>(from + c * kLanes);
  }
  for (int c = 0; c < kCount; ++c) Eigen::Map<Lanes>(to + c * kLanes) += sums[c];
}

// Sums of the rows of each label, label by label: a sum then stays in registers over its rows.
class Scatter {
 public:
  explicit Scatter(const Rows& rows)
      : rows_(rows),
        ends_(as_size(rows.q().rows()) + 1),
        labels_(as_size(rows.at_once())),
        order_(labels_.size()),
        sum_(rows.width()) {}

  // sums.col(y_i) += row i
  void add(Resample& resample, MatrixRef sums) {
    for_each_label(resample, [&](Index y, Index first, Index last) {
      add_label(first, last, sums.col(y).data());
    });
  }

  // |sums - mean|_F^2 of both halves, where these are all rows. The sums of one label exist at a
  // time; what the others leave of the mean is known from the norms of its columns.
  std::pair<double, double> norms(Resample& resample, const Matrix& mean, const Matrix& squares) {
    const Index half = rows_.half();
    double phi = squares.row(0).sum();
    double t = squares.row(1).sum();
    for_each_label(resample, [&](Index y, Index first, Index last) {
      sum_ = -mean.col(y);
      add_label(first, last, sum_.data());
      phi += sum_.head(half).squaredNorm() - squares(0, y);
      t += sum_.tail(half).squaredNorm() - squares(1, y);
    });
    return {phi, t};
  }

 private:
  // Draws the labels, sorts the rows by them, and calls visit(y, first, last) for each that occurs:
  // its rows are order_[first .. last).
  template <class Visit>
  void for_each_label(Resample& resample, Visit visit) {
    std::fill(ends_.begin(), ends_.end(), 0);
    for (Index i = 0; i < rows_.count(); ++i) {
      const Index y = resample.given ? rows_.label(i) : rows_.draw(i, resample.random.uniform());
      const auto [phi, t] = rows_.diagonal(i, y);
      resample.phi_diagonal += phi;
      resample.t_diagonal += t;
      labels_[as_size(i)] = as_size(y);
      ++ends_[as_size(y) + 1];
    }
    for (std::size_t y = 1; y < ends_.size(); ++y) ends_[y] += ends_[y - 1];
    for (Index i = 0; i < rows_.count(); ++i) order_[as_size(ends_[labels_[as_size(i)]]++)] = i;
    Index first = 0;
    for (std::size_t y = 0; y + 1 < ends_.size(); ++y) {  // ends_[y] is the end of label y now
      if (ends_[y] > first) visit(static_cast<Index>(y), first, ends_[y]);
      first = ends_[y];
    }
  }

  void add_label(Index first, Index last, double* to) {
    constexpr Index kWide = 4 * kLanes;
    const Index width = rows_.width();
    Index k = 0;
    for (; k + kWide <= width; k += kWide)
      add_columns<4>(rows_.data() + k, width, order_, first, last, to + k);
    for (; k < width; k += kLanes)
      add_columns<1>(rows_.data() + k, width, order_, first, last, to + k);
  }

  const Rows& rows_;
  std::vector<Index> ends_;
  std::vector<std::size_t> labels_;
  std::vector<Index> order_;
  Vector sum_;
};

// All rows at once, and no sums kept: for many classes, where the sums of one resample are as large
// as the features.
void resample_whole(Rows& rows, std::vector<Resample>& resamples, Matrix& squared_norms,
                    Parallel& parallel) {
  parallel.span(0.05, 0.1);
  rows.load(0, parallel);
  Matrix mean = Matrix::Zero(rows.width(), rows.q().rows());  // [Phi, T]'Q
  add_product_nt(mean, 1.0, rows.both(), rows.q());
  Matrix squares(2, mean.cols());
  squares.row(0) = mean.topRows(rows.half()).colwise().squaredNorm();
  squares.row(1) = mean.bottomRows(rows.half()).colwise().squaredNorm();
  parallel.span(0.1, 1.0);
  parallel.each(static_cast<Index>(resamples.size()), [&] {
    return [&, scatter = Scatter(rows)](Index b) mutable {
      const auto [phi, t] = scatter.norms(resamples[as_size(b)], mean, squares);
      squared_norms.row(b) << phi, t;
    };
  });
}

// Blocks of rows, over which the sums of many resamples are kept; where rows of T are not summed,
// T'R is M^-1 Phi'R.
void resample_in_blocks(Rows& rows, Index n, const RidgeSolver& solver, Index table,
                        std::vector<Resample>& resamples, Matrix& squared_norms,
                        Parallel& parallel) {
  const Index m = rows.q().rows();
  const auto total = static_cast<Index>(resamples.size());
  const Index per_round =
      std::clamp<Index>(table / (m * rows.width()), 1, std::min(total, kTestSets));
  const Index per_task = std::clamp<Index>(kSumsInCache / (m * rows.width()), 1, 16);
  Matrix mean = Matrix::Zero(rows.width(), m);  // Phi'Q, or [Phi, T]'Q, from the first round
  for (Index first = 0; first < total; first += per_round) {
    const Index count = std::min(per_round, total - first);
    Matrix sums(rows.width(), m * count);  // each task clears its own: gigabytes take seconds
    for (Index begin = 0; begin < n; begin += kTestRows) {
      const double done =
          (static_cast<double>(first) +
           static_cast<double>(count) * static_cast<double>(begin) / static_cast<double>(n)) /
          static_cast<double>(total);
      parallel.span(0.05 + 0.95 * done, 0.05 + 0.95 * done);
      rows.load(begin, parallel);
      if (first == 0) add_product_nt(mean, 1.0, rows.both(), rows.q());
      parallel.each(count_pieces(count, per_task), [&] {
        return [&, scatter = Scatter(rows)](Index task) mutable {
          for (Index k = task * per_task; k < std::min((task + 1) * per_task, count); ++k) {
            if (begin == 0) sums.middleCols(k * m, m).setZero();
            scatter.add(resamples[as_size(first + k)], sums.middleCols(k * m, m));
          }
        };
      });
    }
    parallel.each_striped(count, per_task, [&](Index k) {
      const auto sum = sums.middleCols(k * m, m);
      squared_norms(first + k, 0) = (sum - mean).topRows(rows.half()).squaredNorm();
      if (rows.with_t()) {
        squared_norms(first + k, 1) = (sum - mean).bottomRows(rows.half()).squaredNorm();
      } else {
        Matrix x = (sum - mean).topRows(solver.size());
        solver.solve(x);
        squared_norms(first + k, 1) = x.squaredNorm();
      }
    });
  }
}

}  // namespace

Matrix resample_features(const Features& features, const Samples& samples, double ridge,
                         Index n_resamples, std::uint64_t seed, Index table, Parallel& parallel) {
  const Index n = samples.n();
  const Index m = samples.m();
  parallel.span(0.0, 0.05);
  Moments moments(features);
  moments.add(features, samples, nullptr, Precision::kFloat64, parallel);
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  // M^-1 Phi'R costs d^2 m for each resample, to sum up rows of T as well as of Phi n d.
  const bool with_t = features.d() * m > 4 * n;
  const bool whole = with_t && 2 * (features.d() + m) * n <= table;
  Rows rows(features, samples, solver, with_t, whole ? n : kTestRows);

  std::vector<Resample> resamples;
  SplitMix64 seeds(seed);
  for (Index b = 0; b <= n_resamples; ++b)
    resamples.push_back({SplitMix64(b == 0 ? 0 : seeds.bits()), b == 0});
  Matrix squared_norms(n_resamples + 1, 2);  // of Phi'R and T'R
  if (whole)
    resample_whole(rows, resamples, squared_norms, parallel);
  else
    resample_in_blocks(rows, n, solver, table, resamples, squared_norms, parallel);

  Matrix statistics(n_resamples + 1, 3);
  const double pairs = static_cast<double>(n) * static_cast<double>(n - 1);
  for (Index b = 0; b <= n_resamples; ++b) {
    const Resample& resample = resamples[as_size(b)];
    statistics.row(b) << squared_norms(b, 1), squared_norms(b, 1) - resample.t_diagonal,
        (squared_norms(b, 0) - resample.phi_diagonal) / pairs;
  }
  return statistics;
}

}  // namespace ckce
