#include "cholesky.hpp"

#include <algorithm>
#include <cmath>

#include "../moments.hpp"
#include "../products.hpp"

namespace ckce {

Cholesky::Cholesky(const Kernel& kernel, const Points& points, Pivoting pivoting,
                   std::uint64_t seed, Parallel& parallel)
    : kernel_(kernel),
      points_(points),
      pivoting_(pivoting),
      random_(seed),
      residual_(kernel.diagonal(points, parallel)) {
  for (Index i = 0; i < points.n(); ++i)
    if (residual_[i] > largest_) {
      largest_ = residual_[i];
      largest_row_ = i;
    }
  trace_ = residual_trace_ = residual_.sum();
  largest_residual_ = largest_;
}

void Cholesky::extend(Index rank, double tol, Parallel& parallel) {
  constexpr Index kCandidates = 64;
  const Index start = d();
  if (pivoting_ == Pivoting::kGreedy && start == 0 && points_.n() > 2 * kScouts)
    add_from_scouts(rank, tol, parallel);
  while (d() < rank && residual_trace_ > tol * trace_ && !exhausted()) {
    add(choose(std::min(kCandidates, rank - d())), parallel);
    parallel.span(static_cast<double>(d() - start) / static_cast<double>(rank - start), 1.0);
  }
}

// One pass over all rows for each pivot is memory traffic without end where n is large. So the
// first pivots are those of an evenly spread sample of rows, and all come in by one pass for each
// panel of them; what the sample missed is sought among all rows after that.
void Cholesky::add_from_scouts(Index rank, double tol, Parallel& parallel) {
  std::vector<Index> rows(kScouts);
  for (Index i = 0; i < kScouts; ++i) rows[static_cast<std::size_t>(i)] = i * points_.n() / kScouts;
  const Points scouts = points_.subset(rows);
  Cholesky factor(kernel_, scouts, Pivoting::kGreedy, 0, parallel);
  factor.extend(std::min(rank, kScouts), tol, parallel);
  for (std::size_t begin = 0; begin < factor.pivots_.size(); begin += kPanel) {
    std::vector<Index> candidates;
    for (std::size_t k = begin; k < std::min(begin + kPanel, factor.pivots_.size()); ++k)
      candidates.push_back(rows[static_cast<std::size_t>(factor.pivots_[k])]);
    add(candidates, parallel);
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

// The candidates' block of E is factored first. One that those before it explain to the share 1 - s
// is kept with probability s only: as if drawn one by one, and the block stays well conditioned
// (Epperly, Tropp, Webber 2024).
void Cholesky::add(const std::vector<Index>& candidates, Parallel& parallel) {
  const auto count = static_cast<Index>(candidates.size());
  const Points chosen = points_.subset(candidates);
  const Matrix g = rows(candidates);
  Matrix tile(kPanel, kPanel);
  kernel_.full_tile(chosen, 0, chosen, 0, tile);
  Matrix e = tile.topLeftCorner(count, count);
  add_product_nt(e, -1.0, g, g);

  std::vector<Index> kept;
  std::vector<Index> kept_rows;
  Matrix lower = Matrix::Zero(count, count);
  for (Index c = 0; c < count; ++c) {
    const auto size = static_cast<Index>(kept.size());
    Matrix l(size, 1);
    for (Index k = 0; k < size; ++k) l(k, 0) = e(c, kept[static_cast<std::size_t>(k)]);
    solve_lower(lower.topLeftCorner(size, size), l);
    const double rest = e(c, c) - l.squaredNorm();
    if (rest <= kRoundOff * largest_) {
      const Index row = candidates[static_cast<std::size_t>(c)];
      dropped_.emplace_back(row, std::max(rest, 0.0));
      residual_[row] = 0.0;
      continue;
    }
    if (pivoting_ == Pivoting::kRandom && size > 0 && random_.uniform() * e(c, c) > rest) continue;
    lower.row(size).head(size) = l.transpose();
    lower(size, size) = std::sqrt(rest);
    kept.push_back(c);
    kept_rows.push_back(candidates[static_cast<std::size_t>(c)]);
  }
  const auto width = static_cast<Index>(kept.size());
  const auto factor = lower.topLeftCorner(width, width);
  const Points pivots = points_.subset(kept_rows);
  const Matrix g_pivots = rows(kept_rows);
  if (width > 0) make_room(width);

  // G_new = (K(:, S) - G G_S') L^-T, E_ii -= |g_new,i|^2
  struct Summary {
    double trace = 0.0;
    double largest = -1.0;
    Index row = 0;
  };
  const Index n_panels = points_.q.count();
  const Index size = stripe_of(n_panels);
  const Index stripes = (n_panels + size - 1) / size;
  std::vector<Summary> summaries(static_cast<std::size_t>(stripes));
  parallel.each(stripes, [&] {
    return [&, block = Matrix(kPanel, width)](Index stripe) mutable {
      Summary& summary = summaries[static_cast<std::size_t>(stripe)];
      for (Index i = stripe * size; i < std::min((stripe + 1) * size, n_panels); ++i) {
        const Index n_rows = std::min(kPanel, points_.n() - i * kPanel);
        auto e_ii = residual_.segment(i * kPanel, n_rows);
        if (width > 0) {
          kernel_.full_tile(points_, i, pivots, 0, block);
          for (const Chunk& chunk : chunks_)
            if (chunk.used > 0)
              add_product_nt(block, -1.0, chunk.columns.panel(i).leftCols(chunk.used),
                             g_pivots.middleCols(chunk.first, chunk.used));
          solve_lower_transposed_from_right(factor, block);
          block.bottomRows(kPanel - n_rows).setZero();
          Chunk& last = chunks_.back();
          last.columns.panel(i).middleCols(last.used, width) = block;
          e_ii = (e_ii - block.topRows(n_rows).rowwise().squaredNorm()).cwiseMax(0.0);
        }
        summary.trace += e_ii.sum();
        if (const double largest = e_ii.maxCoeff(); largest > summary.largest) {
          summary.largest = largest;
          summary.row = i * kPanel;
          while (residual_[summary.row] != largest) ++summary.row;  // the first of equals
        }
      }
    };
  });
  for (const Index row : kept_rows) {
    summaries[static_cast<std::size_t>(row / (kPanel * size))].trace -= residual_[row];
    residual_[row] = 0.0;
    pivots_.push_back(row);
  }
  if (width > 0) chunks_.back().used += width;
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
  constexpr Index kWidth = 16;
  if (chunks_.empty() || chunks_.back().used + columns > chunks_.back().columns.width())
    chunks_.push_back({Panels(points_.n(), std::max(kWidth, columns), Panels::Unset()), d(), 0});
}

Vector Cholesky::residual() const {
  Vector e_ii = residual_;
  for (const auto& [row, rest] : dropped_) e_ii[row] = rest;
  return e_ii;
}

Matrix Cholesky::rows(const std::vector<Index>& which) const {
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

Solution solve_cholesky(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                        Index rank, double tol, Pivoting pivoting, std::uint64_t seed, double ridge,
                        bool full, Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  Cholesky factor(kernel, points, pivoting, seed, parallel);
  factor.extend(std::min(rank, samples.n()), tol, parallel);
  const Vector residual = factor.residual();
  Solution solution =
      solve_features(factor, samples, label, ridge, &residual, full, Precision::kFloat64, parallel);
  solution.rank = factor.d();
  return solution;
}

}  // namespace ckce
