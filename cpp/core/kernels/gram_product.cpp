#include "core/kernels/gram_product.hpp"

#include <atomic>
#include <memory>

#include "core/linalg/products.hpp"
#include "core/linalg/tile_products.hpp"

namespace ckce {
namespace {

// Whether <p, q> joins the tiles: Q'V has m^2 entries, too many where rows are few. O(n^2 m)
bool linear_in_tiles(const Gram& gram) {
  return gram.kernel.has_linear_part() && gram.n() <= 2 * gram.points.q.width();
}

// Q'V (m, width), column tiles shared out so that each is summed in one order.
Matrix linear_moments(const Panels& q, const Panels& v, Parallel& parallel) {
  Matrix sum = Matrix::Zero(q.width(), v.width());
  parallel.each_piece(v.width(), kMomentColumns, [&](Index begin, Index columns) {
    for (Index i = 0; i < q.count(); ++i)
      add_product_tn(sum.middleCols(begin, columns), 1.0, q.panel(i),
                     v.panel(i).middleCols(begin, columns));
  });
  return sum;
}

}  // namespace

void gram_product(const Gram& gram, const Panels& v, Panels& out, Parallel& parallel) {
  const Kernel& kernel = gram.kernel;
  const Points& points = gram.points;
  const Index n_panels = v.count();
  const bool in_tiles = linear_in_tiles(gram);
  const bool apart = kernel.has_linear_part() && !in_tiles;
  const Matrix linear = apart ? linear_moments(points.q, v, parallel) : Matrix();
  const auto fill = in_tiles ? &Kernel::full_tile : &Kernel::tile;

  // Strip i holds the tiles (i, 0), ..., (i, i). out_j takes the strips' shares in the order j,
  // j + 1, ...; since all strips walk j upwards, strip i only has to stay behind strip i - 1.
  std::unique_ptr<std::atomic<Index>[]> done(new std::atomic<Index>[n_panels]);
  for (Index i = 0; i < n_panels; ++i) done[i] = 0;
  parallel.each(n_panels, [&] {
    // `share` holds one tile's share: a sum over all rows would round more in one go.
    return [&, tile = Matrix(kPanel, kPanel), own = Matrix(kPanel, v.width()),
            share = Matrix(kPanel, v.width())](Index i) mutable {
      own.setZero();
      if (apart) add_product(own, 1.0, points.q.panel(i), linear);
      if (kernel.has_own_part() || in_tiles) {
        for (Index j = 0; j < i; ++j) {
          (kernel.*fill)(points, i, points, j, tile);
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
        (kernel.*fill)(points, i, points, i, tile);
        share.setZero();
        add_tile_product(tile, v.panel(i), share);
        own += share;
      }
      out.panel(i) = own;
      done[i].store(i + 1);
    };
  });
  out.zero_padding();
}

double off_diagonal_form(const Gram& gram, const Panels& r, Parallel& parallel) {
  const Kernel& kernel = gram.kernel;
  const Points& points = gram.points;
  const bool in_tiles = linear_in_tiles(gram);
  const auto fill = in_tiles ? &Kernel::full_tile : &Kernel::tile;
  double total = 0.0;
  if (kernel.has_own_part() || in_tiles)
    parallel.each(r.count(), [&] {
      return [&, tile = Matrix(kPanel, kPanel), kr = Matrix(kPanel, r.width())](Index i) mutable {
        kr.setZero();
        for (Index j = 0; j < i; ++j) {
          (kernel.*fill)(points, i, points, j, tile);
          add_tile_product(tile, r.panel(j), kr);
          parallel.tick();
        }
        double strip = 2.0 * kr.cwiseProduct(r.panel(i)).sum();
        (kernel.*fill)(points, i, points, i, tile);
        tile.diagonal().setZero();
        kr.setZero();
        add_tile_product(tile, r.panel(i), kr);
        strip += kr.cwiseProduct(r.panel(i)).sum();
        parallel.in_turn(i, [&] { total += strip; });
      };
    });
  if (kernel.has_linear_part() && !in_tiles) {  // |Q'R|_F^2 - sum_i |q_i|^2 |r_i|^2, O(n m^2)
    total += linear_moments(points.q, r, parallel).squaredNorm();
    for (Index i = 0; i < r.count(); ++i)
      total -= points.q.panel(i).rowwise().squaredNorm().dot(r.panel(i).rowwise().squaredNorm());
  }
  return total;
}

Matrix whole_gram(const Gram& gram, Parallel& parallel) {
  const Kernel& kernel = gram.kernel;
  const Points& points = gram.points;
  const Index n = points.n();
  Matrix k = unset<Matrix>(n, n);
  parallel.each(points.q.count(), [&] {
    return [&, tile = Matrix(kPanel, kPanel)](Index i) mutable {
      const Index rows = std::min(kPanel, n - i * kPanel);
      for (Index j = 0; j <= i; ++j) {
        const Index columns = std::min(kPanel, n - j * kPanel);
        kernel.full_tile(points, i, points, j, tile.leftCols(columns));
        k.block(i * kPanel, j * kPanel, rows, columns) = tile.topLeftCorner(rows, columns);
        if (j < i)
          k.block(j * kPanel, i * kPanel, columns, rows) =
              tile.topLeftCorner(rows, columns).transpose();
      }
    };
  });
  return k;
}

}  // namespace ckce
