// V -> S V for a symmetric S that comes in tiles and is never stored. Each tile of the lower
// triangle serves both sides of the diagonal.
#pragma once

#include <atomic>
#include <memory>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/linalg/tile_products.hpp"

namespace ckce {

// out = S V (n, width). fill(i, j, tile) gives the tile of panels i >= j, start(i, own) what panel
// i of `out` begins with. Every thread makes its own `fill = make_fill()`, which may hold scratch
// memory.
template <class MakeFill, class Start>
void symmetric_product(const Panels& v, Panels& out, Parallel& parallel, MakeFill make_fill,
                       Start start) {
  const Index n_panels = v.count();
  // Strip i holds the tiles (i, 0), ..., (i, i). out_j takes the strips' shares in the order j,
  // j + 1, ...; since all strips walk j upwards, strip i only has to stay behind strip i - 1.
  std::unique_ptr<std::atomic<Index>[]> done(new std::atomic<Index>[n_panels]);
  for (Index i = 0; i < n_panels; ++i) done[i] = 0;
  parallel.each(n_panels, [&] {
    // `share` holds one tile's share: a sum over all rows would round more in one go.
    return [&, fill = make_fill(), tile = Matrix(kPanel, kPanel), own = Matrix(kPanel, v.width()),
            share = Matrix(kPanel, v.width())](Index i) mutable {
      own.setZero();
      start(i, own);
      for (Index j = 0; j < i; ++j) {
        fill(i, j, tile);
        share.setZero();
        add_tile_product(tile, v.panel(j), share);
        own += share;
        share.setZero();
        add_tile_product_tn(tile, v.panel(i), share);
        parallel.wait_until([&] { return done[i - 1].load() > j; });
        out.panel(j) += share;
        done[i].store(j + 1);
        parallel.tick();
      }
      fill(i, i, tile);
      share.setZero();
      add_tile_product(tile, v.panel(i), share);
      own += share;
      out.panel(i) = own;
      done[i].store(i + 1);
    };
  });
  out.zero_padding();
}

}  // namespace ckce
