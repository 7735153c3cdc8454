// V -> S V for a symmetric S that comes in tiles and is never stored. Each tile of the lower
// triangle serves both sides of the diagonal.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/float_panels.hpp"
#include "core/base/parallel.hpp"
#include "core/linalg/tile_products.hpp"

namespace ckce {

// A second product with the same tiles, which are rounded to float32.
class BesideTask {
 public:
  explicit BesideTask(const Beside* beside) : beside_(beside) {
    if (!beside_) return;
    tile_.resize(kPanel, kPanel);
    own_.resize(kPanel, beside_->v.width());
    share_.resize(kPanel, beside_->v.width());
  }
  template <class Start>
  void begin(Index i, Start start) {
    if (!beside_) return;
    own_.setZero();
    start(i, own_);
  }
  void add_own(const Matrix& tile, Index j) {
    if (!beside_) return;
    tile_ = tile.transpose().cast<float>();
    share_of(j);
    own_ += share_.cast<double>();
    tile_.transposeInPlace();
  }
  void share_of(Index i) {
    if (!beside_) return;
    share_.setZero();
    add_product_tn(share_, 1.0F, tile_, beside_->v.panel(i));
  }
  void add_share(Index j) {
    if (beside_) beside_->out.panel(j) += share_.cast<double>();
  }
  void end(Index i) {
    if (beside_) beside_->out.panel(i) = own_;
  }

 private:
  const Beside* beside_;
  FloatMatrix tile_, share_;
  Matrix own_;
};

// out = S V (n, width). fill(i, j, tile) gives the tile of panels i >= j, start(i, own) what panel
// i of `out` begins with. Every thread makes its own `fill = make_fill()`, which may hold scratch
// memory.
template <class MakeFill, class Start, class StartBeside>
void symmetric_product(const Panels& v, Panels& out, Parallel& parallel, MakeFill make_fill,
                       Start start, const Beside* beside, StartBeside start_beside) {
  const Index n_panels = v.count();
  // Strip i holds the tiles (i, 0), ..., (i, i). out_j takes the strips' shares in the order j,
  // j + 1, ...; since all strips walk j upwards, strip i only has to stay behind strip i - 1.
  std::unique_ptr<std::atomic<Index>[]> done(new std::atomic<Index>[n_panels]);
  for (Index i = 0; i < n_panels; ++i) done[i] = 0;
  parallel.each(n_panels, [&] {
    // `share` holds one tile's share: a sum over all rows would round more in one go.
    return [&, fill = make_fill(), tile = Matrix(kPanel, kPanel), own = Matrix(kPanel, v.width()),
            share = Matrix(kPanel, v.width()), other = BesideTask(beside)](Index i) mutable {
      own.setZero();
      start(i, own);
      other.begin(i, start_beside);
      for (Index j = 0; j < i; ++j) {
        fill(i, j, tile);
        share.setZero();
        add_tile_product(tile, v.panel(j), share);
        own += share;
        other.add_own(tile, j);
        share.setZero();
        add_tile_product_tn(tile, v.panel(i), share);
        other.share_of(i);
        parallel.wait_until([&] { return done[i - 1].load() > j; });
        out.panel(j) += share;
        other.add_share(j);
        done[i].store(j + 1);
        parallel.tick();
      }
      fill(i, i, tile);
      share.setZero();
      add_tile_product(tile, v.panel(i), share);
      own += share;
      out.panel(i) = own;
      other.add_own(tile, i);
      other.end(i);
      done[i].store(i + 1);
    };
  });
  out.zero_padding();
  if (beside) beside->out.zero_padding();
}
template <class MakeFill, class Start>
void symmetric_product(const Panels& v, Panels& out, Parallel& parallel, MakeFill make_fill,
                       Start start) {
  symmetric_product(v, out, parallel, make_fill, start, nullptr, start);
}

}  // namespace ckce
