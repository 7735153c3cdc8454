#include "core/binary/banded.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// a = L L' in place (lower triangle)
void factor_in_place(MatrixRef a) {
  const Index n = a.rows();
  for (Index j = 0; j < n; ++j) {
    auto column = a.col(j).tail(n - j);
    if (j > 0) column.noalias() -= a.block(j, 0, n - j, j) * a.row(j).head(j).transpose();
    if (!(a(j, j) > 0.0))
      throw std::domain_error(
          "K + lambda n I is not positive definite in float64: pass a larger regularization");
    column /= std::sqrt(a(j, j));
  }
}

// Rows and columns of `block` that the columns of an earlier block `from` reach.
struct Overlap {
  Index skip;   // rows of `from` above `block`
  Index rows;   // below
  Index width;  // of those, columns of `block`

  Overlap(const BandBlock& from, const BandBlock& block)
      : skip(block.begin - from.begin),
        rows(from.end - block.begin),
        width(std::min(rows, block.width)) {}
};

// Schur complement of one block: U, what is left below the diagonal, Y = U D^-1, and derivatives.
struct Eliminated {
  Matrix d_dot;     // (width, width)
  Matrix u, u_dot;  // (below, width), dropped when no later block meets them
  Matrix y, y_dot;  // (below, width)
};

}  // namespace

Banded::Banded(std::vector<BandBlock> blocks, double ridge, const FillColumns& fill)
    : blocks_(std::move(blocks)), factor_(blocks_.size()) {
  Index first = 0;  // the first block that meets the present one
  for (Index g = 0; g < static_cast<Index>(blocks_.size()); ++g) {
    const BandBlock& block = blocks_[as_size(g)];
    size_ = block.begin + block.width;
    Matrix& columns = factor_[as_size(g)];
    columns.resize(block.end - block.begin, block.width);
    fill(g, columns);
    columns.diagonal().array() += ridge;
    while (blocks_[as_size(first)].end <= block.begin && first < g) ++first;
    for (Index a = first; a < g; ++a) {  // columns -= L_a L_a'
      const Overlap overlap(blocks_[as_size(a)], block);
      const auto below = factor_[as_size(a)].middleRows(overlap.skip, overlap.rows);
      add_product_nt(columns.topLeftCorner(overlap.rows, overlap.width), -1.0, below,
                     below.topRows(overlap.width));
    }
    factor_in_place(columns.topRows(block.width));
    columns.topRows(block.width).triangularView<Eigen::StrictlyUpper>().setZero();
    if (columns.rows() > block.width)
      solve_lower_transposed_from_right(columns.topRows(block.width),
                                        columns.bottomRows(columns.rows() - block.width));
  }
}

void Banded::solve(MatrixRef b) const {
  const auto count = static_cast<Index>(blocks_.size());
  for (Index g = 0; g < count; ++g) {
    const BandBlock& block = blocks_[as_size(g)];
    const Index below = block.end - block.begin - block.width;
    auto top = b.middleRows(block.begin, block.width);
    solve_lower(factor_[as_size(g)].topRows(block.width), top);
    if (below > 0)
      add_product(b.middleRows(block.begin + block.width, below), -1.0,
                  factor_[as_size(g)].bottomRows(below), top);
  }
  for (Index g = count - 1; g >= 0; --g) {
    const BandBlock& block = blocks_[as_size(g)];
    const Index below = block.end - block.begin - block.width;
    auto top = b.middleRows(block.begin, block.width);
    if (below > 0)
      add_product_tn(top, -1.0, factor_[as_size(g)].bottomRows(below),
                     b.middleRows(block.begin + block.width, below));
    solve_lower_transposed(factor_[as_size(g)].topRows(block.width), top);
  }
}

void Banded::inverse_diagonal(const FillColumns& fill, const TakeDiagonal& take) const {
  const auto count = static_cast<Index>(blocks_.size());
  std::vector<Eliminated> eliminated(blocks_.size());
  Index first = 0;
  for (Index g = 0; g < count; ++g) {
    const BandBlock& block = blocks_[as_size(g)];
    const Index width = block.width;
    const Index below = block.end - block.begin - width;
    Matrix dot(block.end - block.begin, width);  // dG/ds = K, then its Schur complement
    fill(g, dot);
    for (; blocks_[as_size(first)].end <= block.begin && first < g; ++first)
      eliminated[as_size(first)].u = eliminated[as_size(first)].u_dot = Matrix();
    for (Index a = first; a < g; ++a) {  // columns -= U_a Y_a'
      const Overlap overlap(blocks_[as_size(a)], block);
      const Index above = overlap.skip - blocks_[as_size(a)].width;
      const Eliminated& e = eliminated[as_size(a)];
      auto to = dot.topLeftCorner(overlap.rows, overlap.width);
      add_product_nt(to, -1.0, e.u_dot.middleRows(above, overlap.rows),
                     e.y.middleRows(above, overlap.width));
      add_product_nt(to, -1.0, e.u.middleRows(above, overlap.rows),
                     e.y_dot.middleRows(above, overlap.width));
    }
    const Matrix l = factor_[as_size(g)].topRows(width);
    Eliminated& e = eliminated[as_size(g)];
    e.d_dot = dot.topRows(width);
    if (below == 0) continue;
    e.u_dot = dot.bottomRows(below);
    e.y = factor_[as_size(g)].bottomRows(below);
    e.u = product(e.y, l.transpose());
    solve_lower_from_right(l, e.y);  // Y = L_below L^-1
    e.y_dot = e.u_dot;               // (U' - Y D') D^-1
    add_product(e.y_dot, -1.0, e.y, e.d_dot);
    solve_lower_transposed_from_right(l, e.y_dot);
    solve_lower_from_right(l, e.y_dot);
  }
  // Blocks of W and P = W K W among the unknowns that the next block meets.
  Matrix w, p;
  for (Index g = count - 1; g >= 0; --g) {
    const BandBlock& block = blocks_[as_size(g)];
    const Index width = block.width;
    const Index below = block.end - block.begin - width;
    Eliminated& e = eliminated[as_size(g)];
    Matrix d_inverse = Matrix::Identity(width, width);
    solve_lower(factor_[as_size(g)].topRows(width), d_inverse);
    solve_lower_transposed(factor_[as_size(g)].topRows(width), d_inverse);
    Matrix w_next(width + below, width + below);
    Matrix p_next(width + below, width + below);
    Matrix w_cc = d_inverse;
    Matrix p_cc = product(product(d_inverse, e.d_dot), d_inverse);
    if (below > 0) {
      const auto w_ff = w.topLeftCorner(below, below);
      const auto p_ff = p.topLeftCorner(below, below);
      Matrix w_fc = Matrix::Zero(below, width);  // -W_ff Y
      add_product(w_fc, -1.0, w_ff, e.y);
      Matrix p_fc = Matrix::Zero(below, width);  // W_ff Y_dot - P_ff Y
      add_product(p_fc, 1.0, w_ff, e.y_dot);
      add_product(p_fc, -1.0, p_ff, e.y);
      add_product_tn(w_cc, -1.0, e.y, w_fc);     // D^-1 - Y'W_fc
      add_product_tn(p_cc, 1.0, e.y_dot, w_fc);  // D^-1 D_dot D^-1 + Y_dot'W_fc - Y'P_fc
      add_product_tn(p_cc, -1.0, e.y, p_fc);
      w_next.bottomRightCorner(below, below) = w_ff;
      p_next.bottomRightCorner(below, below) = p_ff;
      w_next.bottomLeftCorner(below, width) = w_fc;
      p_next.bottomLeftCorner(below, width) = p_fc;
      w_next.topRightCorner(width, below) = w_fc.transpose();
      p_next.topRightCorner(width, below) = p_fc.transpose();
    }
    w_next.topLeftCorner(width, width) = w_cc;
    p_next.topLeftCorner(width, width) = p_cc;
    take(g, p_cc);
    w.swap(w_next);
    p.swap(p_next);
    e = Eliminated();
  }
}

double Banded::price(const std::vector<BandBlock>& blocks, bool inverse) {
  double numbers = 0.0;
  for (const BandBlock& block : blocks)
    numbers += static_cast<double>(block.width) * static_cast<double>(block.end - block.begin);
  return 8.0 * (inverse ? 3.0 : 1.0) * numbers;
}

}  // namespace ckce
