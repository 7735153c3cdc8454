#include "core/kernels/gram_product.hpp"

#include <atomic>
#include <memory>

#include "core/linalg/products.hpp"
#include "core/linalg/tile_products.hpp"

namespace ckce {
namespace {

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
  const Matrix linear = kernel.has_linear_part() ? linear_moments(points.q, v, parallel) : Matrix();

  // Strip i holds the tiles (i, 0), ..., (i, i). out_j takes the strips' shares in the order j,
  // j + 1, ...; since all strips walk j upwards, strip i only has to stay behind strip i - 1.
  std::unique_ptr<std::atomic<Index>[]> done(new std::atomic<Index>[n_panels]);
  for (Index i = 0; i < n_panels; ++i) done[i] = 0;
  parallel.each(n_panels, [&] {
    return [&, tile = Matrix(kPanel, kPanel), own = Matrix(kPanel, v.width()),
            other = Matrix(kPanel, v.width())](Index i) mutable {
      own.setZero();
      if (kernel.has_linear_part()) add_product(own, 1.0, points.q.panel(i), linear);
      if (kernel.has_own_part()) {
        for (Index j = 0; j < i; ++j) {
          kernel.tile(points, i, points, j, tile);
          add_tile_product(tile, v.panel(j), own);
          other.setZero();
          add_tile_product_tn(tile, v.panel(i), other);
          parallel.wait_until([&] { return done[i - 1].load() > j; });
          out.panel(j) += other;
          done[i].store(j + 1);
          parallel.tick();
        }
        kernel.tile(points, i, points, i, tile);
        add_tile_product(tile, v.panel(i), own);
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
  double total = 0.0;
  if (kernel.has_own_part())
    parallel.each(r.count(), [&] {
      return [&, tile = Matrix(kPanel, kPanel), kr = Matrix(kPanel, r.width())](Index i) mutable {
        kr.setZero();
        for (Index j = 0; j < i; ++j) {
          kernel.tile(points, i, points, j, tile);
          add_tile_product(tile, r.panel(j), kr);
          parallel.tick();
        }
        double strip = 2.0 * kr.cwiseProduct(r.panel(i)).sum();
        kernel.tile(points, i, points, i, tile);
        tile.diagonal().setZero();
        kr.setZero();
        add_tile_product(tile, r.panel(i), kr);
        strip += kr.cwiseProduct(r.panel(i)).sum();
        parallel.in_turn(i, [&] { total += strip; });
      };
    });
  if (kernel.has_linear_part()) {  // |Q'R|_F^2 - sum_i |q_i|^2 |r_i|^2, O(n m^2)
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
  Matrix k(n, n);
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
