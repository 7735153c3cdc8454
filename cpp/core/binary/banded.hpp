// G = ridge I + s K for a block-banded K >= 0: Cholesky factor, and the blocks on the diagonal of
// W K W, W = G^-1.
//
// Blocks meet unknowns from `top` to the one before `end`; neither ever decreases. Eliminated from
// the first to the last, or from the last to the first, blocks fill nothing outside the band. So
// both ends go inwards at the same time, down to a few blocks in the middle that keep them apart
// and are eliminated last:
//
//            blocks, in this order    rows of their columns in the factor
//   left     0 .. middle - 1          begin .. end - 1
//   right    the last .. right        top .. begin + width - 1
//   middle   middle .. right - 1      begin .. the last before `right`
//
// The cut depends on the blocks only, so bits do not depend on threads. Where there is no such
// middle, all blocks are `left`.
//
// W K W itself is dense, but W K W = -dW/ds at s = 1, and the selected inverse (the blocks of W in
// the band) can be differentiated term by term. W - ridge W^2, the derivative in the ridge, would
// cancel the digits of ridge / k.
#pragma once

#include <functional>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"

namespace ckce {

struct BandBlock {
  Index begin;  // the first unknown
  Index width;
  Index top;  // the first unknown above it that it meets, or `begin`
  Index end;  // past the last unknown below it that it meets

  Index past() const { return begin + width; }
};

// Writes rows first, first + 1, ... of the columns of K that belong to a block. They are the block
// and what lies on one side of it. (rows, width)
using FillColumns = std::function<void(Index block, Index first, MatrixRef columns)>;
// Takes the blocks on the diagonal of W K W and of W. (width, width)
using TakeDiagonal = std::function<void(Index block, const Matrix& diagonal, const Matrix& w)>;

class Banded {
 public:
  // O(sum of width (end - begin)^2); `fill` is called once for each block, by up to two threads.
  Banded(const std::vector<BandBlock>& blocks, double ridge, const FillColumns& fill,
         Parallel& parallel);

  Index size() const { return size_; }
  // b -> W b  (size, columns)
  void solve(MatrixRef b, Parallel& parallel) const;
  // Four to six times the work of the factorisation; `fill` and `take` are called once for each
  // block, by up to two threads.
  void inverse_diagonal(const FillColumns& fill, const TakeDiagonal& take,
                        Parallel& parallel) const;

 private:
  // A block and its columns of the factor, rows first .. last - 1: the block itself, and `rest`,
  // which is eliminated later.
  struct Step {
    Index begin, width, first, last;
    Matrix factor;  // (last - first, width)

    Index past() const { return begin + width; }
    Index rest_first() const { return past() < last ? past() : first; }
    Index rest_rows() const { return last - first - width; }
    auto own(Matrix& columns) const { return columns.middleRows(begin - first, width); }
    auto rest(Matrix& columns) const {
      return columns.middleRows(rest_first() - first, rest_rows());
    }
    auto own() const { return factor.middleRows(begin - first, width); }
    auto rest() const { return factor.middleRows(rest_first() - first, rest_rows()); }
  };
  struct Overlap;
  struct Eliminated;
  struct Front;
  // Blocks in the order of their elimination: first, first + step, ... up to `past`.
  struct Run {
    Index first, past, step;
  };
  enum Part { kLeft, kRight, kMiddle };

  void cut(const std::vector<BandBlock>& blocks);
  const Step& step(Index g) const { return steps_[static_cast<std::size_t>(g)]; }
  Index count() const { return static_cast<Index>(steps_.size()); }
  Index begin(Index g) const { return g < count() ? step(g).begin : size_; }
  Run run(Part part) const;
  // Whether the rest of block a has unknowns of block g.
  bool meets(Index a, Index g) const;
  // visit(a) for the blocks that are eliminated before block g and meet it.
  template <class Visit>
  void each_before(Index g, Visit visit) const;
  // in(left) and in(right) at the same time, in(middle), out(middle), out(left) and out(right) at
  // the same time. `work` in products of numbers tells whether threads are worth it.
  void each_part(Index work, const std::function<void(Part)>& in,
                 const std::function<void(Part)>& out, Parallel& parallel) const;

  std::vector<Step> steps_;
  Index size_ = 0;
  Index middle_ = 0, right_ = 0;  // the first block of each, or the number of blocks
  Index numbers_ = 0;             // of the factor
};

}  // namespace ckce
