#include "core/binary/banded.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/linalg/products.hpp"

namespace ckce {
namespace {

constexpr Index kShared = Index{1} << 18;  // products from which a thread is worth its start
constexpr Index kStart = 32;               // rows that take as long as the start of a column

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
  a.triangularView<Eigen::StrictlyUpper>().setZero();
}

}  // namespace

// Rows and columns of `to` that the rest of an earlier block `from` meets.
struct Banded::Overlap {
  Index row, rows, column, columns;  // in the columns of `to`
  Index from_row, from_column;       // in the rest of `from`

  Overlap(const Step& from, const Step& to) {
    const Index begin = from.rest_first();
    const Index past = begin + from.rest_rows();
    const Index first = std::max(begin, to.first);
    const Index first_column = std::max(begin, to.begin);
    row = first - to.first;
    rows = std::min(past, to.last) - first;
    column = first_column - to.begin;
    columns = std::min(past, to.past()) - first_column;
    from_row = first - begin;
    from_column = first_column - begin;
  }
};

// Schur complement of one block: U, what is left in the rest, Y = U D^-1, and derivatives.
struct Banded::Eliminated {
  Matrix d_dot;     // (width, width)
  Matrix u, u_dot;  // (rest, width)
  Matrix y, y_dot;  // (rest, width)
};

// Blocks of W and P = W K W among the unknowns `first`, first + 1, ...
struct Banded::Front {
  Index first = 0;
  Matrix w, p;

  // From the rest of a block, which the front has, to all rows of its columns; then take(P, W) for
  // the blocks of both on the diagonal. (width, width)
  template <class Take>
  void extend(const Step& block, const Matrix& d_inverse, const Eliminated& e, Take take) {
    const Index width = block.width;
    const Index rest = block.rest_rows();
    Matrix w_next(width + rest, width + rest);
    Matrix p_next(width + rest, width + rest);
    Matrix w_cc = d_inverse;
    Matrix p_cc = product(product(d_inverse, e.d_dot), d_inverse);
    const Index c = block.begin - block.first;
    if (rest > 0) {
      const Index f = block.rest_first() - block.first;
      const Index at = block.rest_first() - first;
      const auto w_ff = w.block(at, at, rest, rest);
      const auto p_ff = p.block(at, at, rest, rest);
      Matrix w_fc = Matrix::Zero(rest, width);  // -W_ff Y
      add_product(w_fc, -1.0, w_ff, e.y);
      Matrix p_fc = Matrix::Zero(rest, width);  // W_ff Y_dot - P_ff Y
      add_product(p_fc, 1.0, w_ff, e.y_dot);
      add_product(p_fc, -1.0, p_ff, e.y);
      add_product_tn(w_cc, -1.0, e.y, w_fc);     // D^-1 - Y'W_fc
      add_product_tn(p_cc, 1.0, e.y_dot, w_fc);  // D^-1 D_dot D^-1 + Y_dot'W_fc - Y'P_fc
      add_product_tn(p_cc, -1.0, e.y, p_fc);
      w_next.block(f, f, rest, rest) = w_ff;
      p_next.block(f, f, rest, rest) = p_ff;
      w_next.block(f, c, rest, width) = w_fc;
      p_next.block(f, c, rest, width) = p_fc;
      w_next.block(c, f, width, rest) = w_fc.transpose();
      p_next.block(c, f, width, rest) = p_fc.transpose();
    }
    w_next.block(c, c, width, width) = w_cc;
    p_next.block(c, c, width, width) = p_cc;
    w.swap(w_next);
    p.swap(p_next);
    first = block.first;
    take(p_cc, w_cc);
  }
};

Banded::Run Banded::run(Part part) const {
  if (part == kLeft) return {0, middle_, 1};
  if (part == kRight) return {count() - 1, right_ - 1, -1};
  return {middle_, right_, 1};
}

bool Banded::meets(Index a, Index g) const {
  return step(a).first < step(g).past() && step(g).begin < step(a).last;
}

template <class Visit>
void Banded::each_before(Index g, Visit visit) const {
  if (g < right_) {
    Index a = g;
    while (a > 0 && meets(a - 1, g)) --a;
    for (; a < g; ++a) visit(a);
  }
  if (g >= middle_)
    for (Index a = std::max(g + 1, right_); a < count() && meets(a, g); ++a) visit(a);
}

// No block before the middle meets one after it, and both sides take half of the time. A number
// takes about the same time in wide blocks, where it has more products, and in narrow ones.
void Banded::cut(const std::vector<BandBlock>& blocks) {
  const auto time = [](const BandBlock& block) {
    return block.width * (block.end - block.begin + kStart);
  };
  Index total = 0;
  for (const BandBlock& block : blocks) total += time(block);
  const auto count = static_cast<Index>(blocks.size());
  Index left = 0;
  while (middle_ < count && 2 * left < total) left += time(blocks[as_size(middle_++)]);
  if (middle_ > 1) --middle_;
  right_ = middle_;
  while (right_ < count && blocks[as_size(right_)].begin < blocks[as_size(middle_ - 1)].end)
    ++right_;
  if (right_ == count) middle_ = count;
}

Banded::Banded(const std::vector<BandBlock>& blocks, double ridge, const FillColumns& fill,
               Parallel& parallel) {
  cut(blocks);
  for (const BandBlock& block : blocks) {
    const auto g = static_cast<Index>(steps_.size());
    Step to = {block.begin, block.width, block.begin, block.end, Matrix()};
    if (g >= right_) {
      to.first = block.top;
      to.last = block.past();
    } else if (g >= middle_) {
      to.last = blocks[as_size(right_)].begin;
    }
    size_ = block.past();
    to.factor.resize(to.last - to.first, to.width);  // here, because heaps of threads grow slowly
    numbers_ += to.factor.size();
    steps_.push_back(std::move(to));
  }
  const auto factor = [&](Part part) {
    const Run order = run(part);
    for (Index g = order.first; g != order.past; g += order.step) {
      Step& to = steps_[as_size(g)];
      fill(g, to.first, to.factor);
      auto own = to.own(to.factor);
      own.diagonal().array() += ridge;
      each_before(g, [&](Index a) {  // columns -= L_a L_a'
        const Overlap at(step(a), to);
        const auto rest = step(a).rest();
        add_product_nt(to.factor.block(at.row, at.column, at.rows, at.columns), -1.0,
                       rest.middleRows(at.from_row, at.rows),
                       rest.middleRows(at.from_column, at.columns));
      });
      factor_in_place(own);
      if (to.rest_rows() > 0) solve_lower_transposed_from_right(own, to.rest(to.factor));
    }
  };
  each_part(16 * numbers_, factor, [](Part) {}, parallel);
}

void Banded::each_part(Index work, const std::function<void(Part)>& in,
                       const std::function<void(Part)>& out, Parallel& parallel) const {
  std::atomic<bool> left_is_in{false}, middle_is_out{false};
  Parallel alone;
  Parallel& threads = work < kShared ? alone : parallel;
  // A task waits for tasks before it only, so one thread can do all of them.
  threads.each(3, [&] {
    return [&](Index task) {
      if (task == 0) {
        in(kLeft);
        left_is_in = true;
      } else if (task == 1) {
        in(kRight);
        threads.wait_until([&] { return left_is_in.load(); });
        in(kMiddle);
        out(kMiddle);
        middle_is_out = true;
        out(kRight);
      } else {
        threads.wait_until([&] { return middle_is_out.load(); });
        out(kLeft);
      }
    };
  });
}

void Banded::solve(MatrixRef b, Parallel& parallel) const {
  const Index from = begin(middle_);
  const Index middle = begin(right_) - from;
  // Both sides add to the middle, so the right side has a copy of it.
  Matrix right = b.bottomRows(size_ - from);
  right.topRows(middle).setZero();
  const auto rows = [&](Part part, Index first, Index count) {
    return part == kRight ? MatrixRef(right.middleRows(first - from, count))
                          : MatrixRef(b.middleRows(first, count));
  };
  const auto in = [&](Part part) {
    if (part == kMiddle) b.middleRows(from, middle) += right.topRows(middle);
    const Run order = run(part);
    for (Index g = order.first; g != order.past; g += order.step) {
      const Step& block = step(g);
      MatrixRef own = rows(part, block.begin, block.width);
      solve_lower(block.own(), own);
      if (block.rest_rows() > 0)
        add_product(rows(part, block.rest_first(), block.rest_rows()), -1.0, block.rest(), own);
    }
  };
  const auto out = [&](Part part) {
    const Run order = run(part);
    for (Index g = order.past; g != order.first;) {
      g -= order.step;
      const Step& block = step(g);
      MatrixRef own = rows(part, block.begin, block.width);
      if (block.rest_rows() > 0)
        add_product_tn(own, -1.0, block.rest(), rows(part, block.rest_first(), block.rest_rows()));
      solve_lower_transposed(block.own(), own);
    }
    if (part == kMiddle) right.topRows(middle) = b.middleRows(from, middle);
  };
  each_part(numbers_ * b.cols(), in, out, parallel);
  b.bottomRows(size_ - from - middle) = right.bottomRows(size_ - from - middle);
}

void Banded::inverse_diagonal(const FillColumns& fill, const TakeDiagonal& take,
                              Parallel& parallel) const {
  std::vector<Eliminated> eliminated(steps_.size());
  const auto in = [&](Part part) {
    const Run order = run(part);
    Index oldest = order.first;  // the first block whose U is needed
    for (Index g = order.first; g != order.past; g += order.step) {
      const Step& block = step(g);
      Matrix dot(block.last - block.first, block.width);  // dG/ds = K, then its Schur complement
      fill(g, block.first, dot);
      for (; oldest != g && !meets(oldest, g); oldest += order.step)
        eliminated[as_size(oldest)].u = eliminated[as_size(oldest)].u_dot = Matrix();
      each_before(g, [&](Index a) {  // columns -= U_a Y_a'
        const Overlap at(step(a), block);
        const Eliminated& e = eliminated[as_size(a)];
        auto to = dot.block(at.row, at.column, at.rows, at.columns);
        add_product_nt(to, -1.0, e.u_dot.middleRows(at.from_row, at.rows),
                       e.y.middleRows(at.from_column, at.columns));
        add_product_nt(to, -1.0, e.u.middleRows(at.from_row, at.rows),
                       e.y_dot.middleRows(at.from_column, at.columns));
      });
      const Matrix l = block.own();
      Eliminated& e = eliminated[as_size(g)];
      e.d_dot = block.own(dot);
      if (block.rest_rows() == 0) continue;
      e.u_dot = block.rest(dot);
      e.y = block.rest();
      e.u = product(e.y, l.transpose());
      solve_lower_from_right(l, e.y);  // Y = L_rest L^-1
      e.y_dot = e.u_dot;               // (U' - Y D') D^-1
      add_product(e.y_dot, -1.0, e.y, e.d_dot);
      solve_lower_transposed_from_right(l, e.y_dot);
      solve_lower_from_right(l, e.y_dot);
    }
  };
  Front inner;  // of the middle
  const auto out = [&](Part part) {
    Front front = inner;
    const Run order = run(part);
    for (Index g = order.past; g != order.first;) {
      g -= order.step;
      const Step& block = step(g);
      Eliminated& e = eliminated[as_size(g)];
      Matrix d_inverse = Matrix::Identity(block.width, block.width);
      solve_lower(block.own(), d_inverse);
      solve_lower_transposed(block.own(), d_inverse);
      front.extend(block, d_inverse, e, [&](const Matrix& p, const Matrix& w) { take(g, p, w); });
      e = Eliminated();
    }
    if (part == kMiddle) inner = front;
  };
  each_part(64 * numbers_, in, out, parallel);
}

}  // namespace ckce
