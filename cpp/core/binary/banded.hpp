// G = ridge I + s K for a block-banded K >= 0: Cholesky factor, and the blocks on the diagonal of
// W K W, W = G^-1.
//
// Unknowns of a block reach to the unknown before `end`; ends never decrease, so the factor fills
// nothing outside the band. W K W itself is dense, but W K W = -dW/ds at s = 1, and the selected
// inverse (the blocks of W in the band) can be differentiated term by term. W - ridge W^2, the
// derivative in the ridge, would cancel the digits of ridge / k.
#pragma once

#include <functional>
#include <vector>

#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"
#include "core/base/types.hpp"

namespace ckce {

struct BandBlock {
  Index begin;  // the first unknown
  Index width;
  Index end;  // past the last unknown below it that it meets
};

// Writes the columns of K that belong to a block, rows begin .. end - 1. (end - begin, width)
using FillColumns = std::function<void(Index block, MatrixRef columns)>;
// Takes a block on the diagonal of W K W. (width, width)
using TakeDiagonal = std::function<void(Index block, const Matrix& diagonal)>;

class Banded {
 public:
  // O(sum of width (end - begin)^2); `fill` is called once for each block, in order.
  Banded(std::vector<BandBlock> blocks, double ridge, const FillColumns& fill);

  Index size() const { return size_; }
  // b -> W b  (size, columns)
  void solve(MatrixRef b) const;
  // Four to six times the work of the factorisation; `take` goes from the last block to the first.
  void inverse_diagonal(const FillColumns& fill, const TakeDiagonal& take) const;
  // Bytes of a factor of `blocks`, and of all that inverse_diagonal holds.
  static double price(const std::vector<BandBlock>& blocks, bool inverse);

 private:
  std::vector<BandBlock> blocks_;
  Index size_ = 0;
  // Columns of the Cholesky factor, the block on the diagonal on top: (end - begin, width)
  std::vector<Matrix> factor_;
};

}  // namespace ckce
