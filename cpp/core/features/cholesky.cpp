#include "core/features/cholesky.hpp"

#include <algorithm>
#include <cmath>

#include "core/features/slack.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

Cholesky::Cholesky(const Gram& gram, Pivoting pivoting, std::uint64_t seed, Parallel& parallel,
                   const Matrix* whole)
    : whole_(whole),
      m_(gram.points.q.width()),
      entry_error_(gram.kernel.entry_error(gram.points)),
      pivoting_(pivoting),
      random_(seed),
      residual_(gram.kernel.diagonal(gram.points, parallel)) {
  const Index n_panels = gram.points.q.count();
  const Index stripe = stripe_of(n_panels);
  std::vector<Summary> summaries(as_size(count_pieces(n_panels, stripe)));
  parallel.each_striped(n_panels, stripe,
                        [&](Index i) { summarise(i, summaries[as_size(i / stripe)]); });
  sum_up(summaries);
  trace_ = residual_trace_;
  largest_ = largest_residual_;
}

void Cholesky::extend(const Gram& gram, Index rank, double tol, Parallel& parallel) {
  const Index start = d();
  if (pivoting_ == Pivoting::kGreedy && start == 0 && gram.n() > 2 * kScouts)
    add_from_scouts(gram, rank, tol, parallel);
  while (d() < rank && residual_trace_ > tol * trace_ && !exhausted()) {
    add(gram, choose(std::min(kCandidates, rank - d())), parallel);
    parallel.span(static_cast<double>(d() - start) / static_cast<double>(rank - start), 1.0);
  }
}

// One pass over all rows for each pivot is memory traffic without end where n is large. So the
// first pivots are those of an evenly spread sample of rows, and all come in by one pass for each
// panel of them; what the sample missed is sought among all rows after that.
void Cholesky::add_from_scouts(const Gram& gram, Index rank, double tol, Parallel& parallel) {
  std::vector<Index> rows(kScouts);
  for (Index i = 0; i < kScouts; ++i) rows[as_size(i)] = i * gram.n() / kScouts;
  const Points points = gram.points.subset(rows);
  const Gram scouts{gram.kernel, points};
  Cholesky factor(scouts, Pivoting::kGreedy, 0, parallel);
  factor.extend(scouts, std::min(rank, kScouts), tol, parallel);
  std::vector<Index> found;
  for (const Index pivot : factor.pivots_) found.push_back(rows[as_size(pivot)]);
  add_in_order(gram, found, parallel);
}

void Cholesky::add_in_order(const Gram& gram, const std::vector<Index>& rows, Parallel& parallel) {
  for (auto first = rows.begin(); first != rows.end();) {
    const auto last = first + std::min<Index>(kPanel, rows.end() - first);
    add(gram, {first, last}, parallel);
    first = last;
  }
}

std::vector<Index> Cholesky::choose(Index count) {
  if (pivoting_ == Pivoting::kGreedy) return {largest_row_};
  Vector cumulative(residual_.size());
  double sum = 0.0;
  for (Index i = 0; i < residual_.size(); ++i) cumulative[i] = (sum += residual_[i]);
  std::vector<Index> rows;
  for (Index c = 0; c < count; ++c) {
    const double* at = std::upper_bound(
        cumulative.data(), cumulative.data() + cumulative.size() - 1, random_.uniform() * sum);
    const Index row = at - cumulative.data();
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  }
  return rows;
}

void Cholesky::add(const Gram& gram, const std::vector<Index>& candidates, Parallel& parallel) {
  const Kept kept = keep(gram, candidates);
  std::vector<Summary> summaries = append_columns(gram, kept, parallel);
  const Index stripe = stripe_of(gram.points.q.count());
  for (const Index row : kept.rows) {
    summaries[as_size(row / (kPanel * stripe))].trace -= residual_[row];
    residual_[row] = 0.0;
    pivots_.push_back(row);
  }
  sum_up(summaries);
}

namespace {

constexpr Index kWholeRows = 4096;  // up to which all of K is computed first, if rows are long

// K over at most kPanel points.
Matrix entries_among(const Kernel& kernel, const Points& points) {
  Matrix tile(kPanel, kPanel);
  kernel.full_tile(points, 0, points, 0, tile);
  return tile.topLeftCorner(points.n(), points.n());
}

}  // namespace

// The candidates' block of E is factored first. One that those before it explain to the share 1 - s
// is kept with probability s only: as if drawn one by one, and the block stays well conditioned
// (Epperly, Tropp, Webber 2024).
Cholesky::Kept Cholesky::keep(const Gram& gram, const std::vector<Index>& candidates) {
  const auto count = static_cast<Index>(candidates.size());
  const Matrix g = rows_of_g(candidates);
  Matrix e = whole_ ? Matrix((*whole_)(candidates, candidates))
                    : entries_among(gram.kernel, gram.points.subset(candidates));
  add_product_nt(e, -1.0, g, g);

  Kept kept;
  std::vector<Index> at;  // among the candidates
  Matrix lower = Matrix::Zero(count, count);
  for (Index c = 0; c < count; ++c) {
    const Index row = candidates[as_size(c)];
    const auto size = static_cast<Index>(at.size());
    Matrix l(size, 1);
    for (Index k = 0; k < size; ++k) l(k, 0) = e(c, at[as_size(k)]);
    solve_lower(lower.topLeftCorner(size, size), l);
    const double rest = e(c, c) - l.squaredNorm();
    if (rest <= kRoundOff * largest_) {
      dropped_.emplace_back(row, std::max(rest, 0.0));
      residual_[row] = 0.0;
      continue;
    }
    if (pivoting_ == Pivoting::kRandom && size > 0 && random_.uniform() * e(c, c) > rest) continue;
    lower.row(size).head(size) = l.transpose();
    lower(size, size) = std::sqrt(rest);
    at.push_back(c);
    kept.rows.push_back(row);
  }
  const auto width = static_cast<Index>(at.size());
  kept.factor = lower.topLeftCorner(width, width);
  return kept;
}

// G_new = (K(:, S) - G G_S') L^-T, E_ii -= |g_new,i|^2
std::vector<Cholesky::Summary> Cholesky::append_columns(const Gram& gram, const Kept& kept,
                                                        Parallel& parallel) {
  const auto width = static_cast<Index>(kept.rows.size());
  const Points pivots = whole_ ? Points() : gram.points.subset(kept.rows);
  const Matrix g_pivots = rows_of_g(kept.rows);
  if (width > 0) make_room(width);
  const Index n_panels = gram.points.q.count();
  const Index stripe = stripe_of(n_panels);
  std::vector<Summary> summaries(as_size(count_pieces(n_panels, stripe)));
  parallel.each(static_cast<Index>(summaries.size()), [&] {
    return [&, block = Matrix(kPanel, width)](Index task) mutable {
      for (Index i = task * stripe; i < std::min((task + 1) * stripe, n_panels); ++i) {
        if (width > 0) {
          const Index n_rows = gram.points.q.rows(i);
          if (whole_)
            block.topRows(n_rows) = (*whole_)(Eigen::seqN(i * kPanel, n_rows), kept.rows);
          else
            gram.kernel.full_tile(gram.points, i, pivots, 0, block);
          for (const Chunk& chunk : chunks_)
            if (chunk.used > 0)
              add_product_nt(block, -1.0, chunk.columns.panel(i).leftCols(chunk.used),
                             g_pivots.middleCols(chunk.first, chunk.used));
          solve_lower_transposed_from_right(kept.factor, block);
          block.bottomRows(kPanel - n_rows).setZero();
          Chunk& last = chunks_.back();
          last.columns.panel(i).middleCols(last.used, width) = block;
          auto e_ii = residual_.segment(i * kPanel, n_rows);
          e_ii = (e_ii - block.topRows(n_rows).rowwise().squaredNorm()).cwiseMax(0.0);
        }
        summarise(i, summaries[as_size(task)]);
      }
    };
  });
  if (width > 0) chunks_.back().used += width;
  return summaries;
}

void Cholesky::summarise(Index panel, Summary& summary) const {
  const Index begin = panel * kPanel;
  const auto e_ii = residual_.segment(begin, std::min(kPanel, residual_.size() - begin));
  summary.trace += e_ii.sum();
  const double largest = e_ii.maxCoeff();
  if (!(largest > summary.largest)) return;
  summary.largest = largest;
  summary.row = begin;
  while (residual_[summary.row] != largest) ++summary.row;
}

void Cholesky::sum_up(const std::vector<Summary>& summaries) {
  residual_trace_ = 0.0;
  largest_residual_ = -1.0;
  for (const Summary& summary : summaries) {
    residual_trace_ += summary.trace;
    if (summary.largest > largest_residual_) {
      largest_residual_ = summary.largest;
      largest_row_ = summary.row;
    }
  }
}

void Cholesky::make_room(Index columns) {
  if (chunks_.empty() || chunks_.back().used + columns > chunks_.back().columns.width())
    chunks_.push_back(
        {Panels(residual_.size(), std::max(kChunkColumns, columns), Panels::Unset()), d(), 0});
}

Vector Cholesky::residual() const {
  Vector e_ii = residual_;
  for (const auto& [row, rest] : dropped_) e_ii[row] = rest;
  return e_ii;
}

Vector Cholesky::left_out(Index begin, const In& q, const In&) const {
  Vector e_ii = residual_.segment(begin, q.rows());
  for (const auto& [row, rest] : dropped_)
    if (row >= begin && row < begin + q.rows()) e_ii[row - begin] = rest;
  // A difference of sums of d squares and of m.
  const double terms = static_cast<double>(3 * d() + m_ + 8);
  return e_ii + Vector::Constant(q.rows(), terms * kUnit * largest_);
}

double Cholesky::slack(const Matrix& phi_phi, double weight, Parallel& parallel) const {
  const Matrix l = rows_of_g(pivots_).triangularView<Eigen::Lower>();
  return slack_of(l, phi_phi, weight, entry_error_, parallel);
}

Matrix Cholesky::rows_of_g(const std::vector<Index>& which) const {
  Matrix g(static_cast<Index>(which.size()), d());
  for (std::size_t k = 0; k < which.size(); ++k)
    for (const Chunk& chunk : chunks_)
      g.row(static_cast<Index>(k)).segment(chunk.first, chunk.used) =
          chunk.columns.row(which[k]).head(chunk.used);
  return g;
}

void Cholesky::fill(Index begin, const In& q, MatrixRef phi) const {
  for (Index i = 0; i < q.rows(); i += kPanel) {
    const Index n_rows = std::min(kPanel, q.rows() - i);
    for (const Chunk& chunk : chunks_)
      phi.block(i, chunk.first, n_rows, chunk.used) =
          chunk.columns.panel((begin + i) / kPanel).topLeftCorner(n_rows, chunk.used);
  }
}

In Cholesky::panel(Index i, Index rows, Matrix& copy) const {
  if (chunks_.size() == 1) return chunks_[0].columns.panel(i).topLeftCorner(rows, d());
  copy.resize(rows, d());
  for (const Chunk& chunk : chunks_)
    copy.middleCols(chunk.first, chunk.used) =
        chunk.columns.panel(i).topLeftCorner(rows, chunk.used);
  return copy;
}

Cholesky factor_kernel(const Kernel& kernel, const Probs& probs, Index rank, double tol,
                       Pivoting pivoting, std::uint64_t seed, Parallel& parallel) {
  const Points points = kernel.points(probs, parallel);
  // Where rows are few and long, K is smaller than Q, and its entries cost more than all the rest.
  const bool few = probs.n <= probs.m && probs.n <= std::min(2 * rank, kWholeRows);
  const Matrix whole = few ? whole_gram({kernel, points}, parallel) : Matrix();
  const Gram gram{kernel, points};
  Cholesky factor(gram, pivoting, seed, parallel, few ? &whole : nullptr);
  factor.extend(gram, std::min(rank, probs.n), tol, parallel);
  factor.whole_ = nullptr;
  return factor;
}

}  // namespace ckce
