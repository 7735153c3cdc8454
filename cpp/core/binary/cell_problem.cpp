#include "core/binary/cell_problem.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/rounding.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

constexpr Index kStripe = 256;             // cells of a task
constexpr Index kFewProducts = 16;         // of columns, up to which calls cost more than loops
constexpr double kWellConditioned = 0.01;  // lambda above which no solve needs refinement

// sum_i s_i T_a(t_i) T_b(t_i)
double pair_moment(const double* moments, Index a, Index b) {
  return 0.5 * (moments[a + b] + moments[a > b ? a - b : b - a]);
}

Matrix pair_moments(const double* moments, Index nodes) {
  Matrix s(nodes, nodes);
  for (Index b = 0; b < nodes; ++b)
    for (Index a = 0; a < nodes; ++a) s(a, b) = pair_moment(moments, a, b);
  return s;
}

// S + jitter I = F F', F lower triangular. Rows that lie close together make S singular, and its
// small directions are noise, some eps of the weight; but they cannot be left out: a residual has
// as much in them as elsewhere, so B = F b keeps the root of the noise. The jitter lifts them over
// the noise; its effect on the value is known to first order and taken back.
double factor_moments(const double* moments, MatrixRef f) {
  const Index nodes = f.rows();
  const double jitter = 16.0 * kUnit * static_cast<double>(nodes) * moments[0];
  f = pair_moments(moments, nodes);
  f.diagonal().array() += jitter;
  for (Index j = 0; j < nodes; ++j) {
    auto column = f.col(j).tail(nodes - j);
    if (j > 0) column.noalias() -= f.block(j, 0, nodes - j, j) * f.row(j).head(j).transpose();
    column /= std::sqrt(std::max(f(j, j), 0.5 * jitter));
    f.col(j).head(j).setZero();
  }
  return jitter;
}

// Different p: S = sum_j w_j a_j a_j', so F = [sqrt(w_j) a_j].
void factor_points(const Cell& cell, const Grid& grid, MatrixRef f) {
  Index j = 0;
  for (const Point& point : cell.points) {
    chebyshev(grid.place(point.p, cell.cell), f.rows(), f.col(j).data());
    f.col(j++) *= std::sqrt(point.w());
  }
}

}  // namespace

CellProblem::CellProblem(const CellSums& sums, bool linear, double ridge, Parallel& parallel)
    : sums_(sums),
      kernel_(sums, linear, parallel),
      ridge_(ridge),
      whole_(kernel_.count() > 0 && kernel_.end(0) == kernel_.count()) {
  factor_cells(parallel);
  factor_ = std::make_unique<Banded>(
      cut_into_blocks(), ridge,
      [&](Index block, Index row, MatrixRef columns) {
        parallel.tick();
        fill(block, row, columns);
      },
      parallel);
  update_ = linear && !whole_;
  if (!update_) return;
  x_ = n_;
  factor_->solve(x_, parallel);
  c_ = (c_ + Eigen::Matrix2d(product_tn(n_, x_))).inverse();
}

void CellProblem::factor_cells(Parallel& parallel) {
  const Index count = kernel_.count();
  begins_.assign(1, 0);
  for (Index c = 0; c < count; ++c) {
    const Cell& cell = sums_.cell(kernel_.slot(c));
    begins_.push_back(begins_.back() +
                      (cell.dense() ? kernel_.nodes() : static_cast<Index>(cell.points.size())));
  }
  basis_.resize(kernel_.nodes(), rank());
  n_.resize(rank(), 2);
  jitter_ = Vector::Zero(count);
  parallel.each_striped(count, kStripe, [&](Index c) {
    const Index slot = kernel_.slot(c);
    auto f = basis_.middleCols(begin(c), rank(c));
    if (dense(c))
      jitter_[c] = factor_moments(sums_.w(slot), f);
    else
      factor_points(sums_.cell(slot), kernel_.grid(), f);
    n_.middleRows(begin(c), rank(c)) = f.topRows<2>().transpose() * kernel_.line(c);
  });
}

std::vector<BandBlock> CellProblem::cut_into_blocks() {
  std::vector<BandBlock> blocks;
  Index top = 0;  // the first cell that sees the present one
  for (Index c = 0; c < kernel_.count();) {
    members_.push_back(c);
    const Index first = c;
    while (kernel_.end(top) <= first) ++top;
    // Cells that do not see each other stay apart.
    do ++c;
    while (c < kernel_.end(c - 1) && begin(c + 1) - begin(first) <= kBlockWidth);
    blocks.push_back(
        {begin(first), begin(c) - begin(first), begin(top), begin(kernel_.end(c - 1))});
  }
  members_.push_back(kernel_.count());
  return blocks;
}

// Columns of the Gaussian part of K~ = F'M F; of all of it where every cell sees every other
void CellProblem::fill(Index block, Index row, MatrixRef columns) const {
  const Index k = kernel_.nodes();
  const Index first = members_[as_size(block)];
  const Index last = members_[as_size(block + 1)];
  const Index past = row + columns.rows();
  const bool up = row < begin(first);
  const Matrix m_f = product(up ? kernel_.coefficients_up() : kernel_.coefficients(),
                             basis_.middleCols(begin(first), columns.cols()));
  columns.setZero();
  for (Index c = first; c < last; ++c) {
    const auto fill_tile = [&](Index d) {
      auto tile = columns.block(begin(d) - row, begin(c) - begin(first), rank(d), rank(c));
      const auto m_fc = m_f.block(std::abs(kernel_.cell(d) - kernel_.cell(c)) * k,
                                  begin(c) - begin(first), k, rank(c));
      if (tile.size() <= kFewProducts)
        tile = basis(d).transpose().lazyProduct(m_fc);
      else
        add_product_tn(tile, 1.0, basis(d), m_fc);
      if (d != c && d >= first && d < last)
        columns.block(begin(c) - row, begin(d) - begin(first), rank(c), rank(d)) = tile.transpose();
    };
    if (up)
      for (Index d = c; d >= 0 && kernel_.end(d) > c && begin(d) >= row; --d) fill_tile(d);
    else
      for (Index d = c; d < kernel_.end(c) && begin(d) < past; ++d) fill_tile(d);
  }
  if (whole_ && kernel_.linear())
    add_product_nt(columns, 1.0, n_.middleRows(row, columns.rows()),
                   n_.middleRows(begin(first), columns.cols()));
}

Matrix CellProblem::solve(const Matrix& b, Parallel& parallel) const {
  Matrix w_b = b;
  factor_->solve(w_b, parallel);
  if (update_) add_product(w_b, -1.0, x_, c_ * product_tn(n_, w_b));
  return w_b;
}

Vector CellProblem::solve_refined(const Vector& b, Parallel& parallel) const {
  Vector v = solve(b, parallel);
  if (ridge_ > kWellConditioned * sums_.weight) return v;
  const Vector rest = b - ridge_ * v - project(kernel_.apply(expand(v), parallel));
  return v + solve(rest, parallel);
}

double CellProblem::forms(const Matrix& b) const {
  Parallel alone;
  Matrix v = solve(b, alone);
  if (ridge_ <= kWellConditioned * sums_.weight)
    for (Index j = 0; j < b.cols(); ++j) v.col(j) = solve_refined(b.col(j), alone);
  const Index k = kernel_.nodes();
  Matrix z(k * kernel_.count(), v.cols());
  for (Index c = 0; c < kernel_.count(); ++c)
    z.middleRows(c * k, k) = product(basis(c), v.middleRows(begin(c), rank(c)));
  return kernel_.forms(z);
}

Vector CellProblem::compress_residuals() const {
  Vector b(rank());
  for (Index c = 0; c < kernel_.count(); ++c) {
    const Index slot = kernel_.slot(c);
    if (dense(c)) b.segment(begin(c), rank(c)) = Eigen::Map<const Vector>(sums_.wr(slot), rank(c));
    Index j = begin(c);
    for (const Point& point : sums_.cell(slot).points) b[j++] = point.wr();
  }
  compress(b);
  return b;
}

void CellProblem::compress(MatrixRef b) const {
  for (Index c = 0; c < kernel_.count(); ++c) {
    auto part = b.middleRows(begin(c), rank(c));
    if (part.isZero(0.0)) continue;  // few rows of a group are in few cells
    if (dense(c)) solve_lower(basis_.middleCols(begin(c), rank(c)), part);
    Index j = 0;
    for (const Point& point : sums_.cell(kernel_.slot(c)).points)
      part.row(j++) /= std::sqrt(point.w());
  }
}

double CellProblem::form(const Vector& v, Parallel& parallel) const {
  const Matrix z = expand(v);
  return z.cwiseProduct(kernel_.apply(z, parallel)).sum();
}

Matrix CellProblem::expand(const Vector& v) const {
  Matrix z(kernel_.nodes(), kernel_.count());
  for (Index c = 0; c < kernel_.count(); ++c)
    z.col(c).noalias() = basis_.middleCols(begin(c), rank(c)) * v.segment(begin(c), rank(c));
  return z;
}

Vector CellProblem::project(const Matrix& g) const {
  Vector v(rank());
  for (Index c = 0; c < kernel_.count(); ++c)
    v.segment(begin(c), rank(c)).noalias() =
        basis_.middleCols(begin(c), rank(c)).transpose() * g.col(c);
  return v;
}

template <class Visit>
void CellProblem::each_block(Visit visit, Parallel& parallel) const {
  factor_->inverse_diagonal(
      [&](Index block, Index row, MatrixRef columns) {
        parallel.tick();
        fill(block, row, columns);
      },
      [&](Index block, const Matrix& p_0, const Matrix& w_0) {
        parallel.tick();
        const Index first = begin(members_[as_size(block)]);
        for (Index c = members_[as_size(block)]; c < members_[as_size(block + 1)]; ++c) {
          const auto of_cell = [&](const Matrix& m) -> Matrix {
            return m.block(begin(c) - first, begin(c) - first, rank(c), rank(c));
          };
          visit(c, of_cell(p_0), of_cell(w_0));
        }
      },
      parallel);
}

void CellProblem::each_inverse(const TakeCell& take, Parallel& parallel) const {
  each_block(
      [&](Index c, const Matrix&, Matrix w) {
        if (update_) {  // W = W_0 - X C X'
          const auto x_c = x_.middleRows(begin(c), rank(c));
          add_product_nt(w, -1.0, product(x_c, c_), x_c);
        }
        take(c, w);
      },
      parallel);
}

void CellProblem::each_diagonal(const TakeCell& take, Parallel& parallel) const {
  Matrix y;
  Eigen::Matrix2d middle;
  if (update_) {
    y.resize(rank(), 2);  // Y = P_0 N~ = W_0 T~ X
    for (Index j = 0; j < 2; ++j) y.col(j) = project(kernel_.gaussian(expand(x_.col(j)), parallel));
    factor_->solve(y, parallel);
    middle = c_ * (Eigen::Matrix2d::Identity() + Eigen::Matrix2d(product_tn(n_, y))) * c_;
  }
  each_block(
      [&](Index c, Matrix p, const Matrix&) {
        if (update_) {
          const auto x_c = x_.middleRows(begin(c), rank(c));
          Matrix y_c_x = Matrix::Zero(rank(c), rank(c));
          add_product_nt(y_c_x, 1.0, product(y.middleRows(begin(c), rank(c)), c_), x_c);
          add_product_nt(p, 1.0, product(x_c, middle), x_c);
          p -= y_c_x + y_c_x.transpose();
        }
        take(c, p);
      },
      parallel);
}

std::pair<double, double> CellProblem::diagonal_terms(Parallel& parallel) const {
  Matrix terms(kernel_.count(), 2);
  each_diagonal([&](Index c, const Matrix& p) { terms.row(c) = diagonal_terms(c, p); }, parallel);
  return {terms.col(0).sum(), terms.col(1).sum()};
}

// sum_i w_i s_i q_i'P q_i = Tr(F^-1 [sum_i w_i s_i a_i a_i'] F'^-1 P)
Eigen::RowVector2d CellProblem::diagonal_terms(Index c, const Matrix& p) const {
  const Index slot = kernel_.slot(c);
  if (dense(c)) {
    const Matrix f = basis_.middleCols(begin(c), rank(c));
    const auto trace = [&](const double* moments) {
      Matrix s = pair_moments(moments, kernel_.nodes());
      solve_lower(f, s);
      solve_lower_transposed_from_right(f, s);
      return s.cwiseProduct(p).sum();
    };
    return {trace(sums_.wr2(slot)), trace(sums_.wpq(slot))};
  }
  Eigen::RowVector2d terms(0.0, 0.0);
  Index j = 0;
  for (const Point& point : sums_.cell(slot).points) {
    terms[0] += point.wr2() / point.w() * p(j, j);
    terms[1] += point.p * (1.0 - point.p) * p(j, j);
    ++j;
  }
  return terms;
}

}  // namespace ckce
