#include "core/kernels/gram_product.hpp"

#include "core/linalg/products.hpp"
#include "core/linalg/symmetric_tiles.hpp"

namespace ckce {
namespace {

// Whether <p, q> joins the tiles: Q'V has m^2 entries, too many where rows are few. O(n^2 m)
bool linear_in_tiles(const Gram& gram) {
  return gram.kernel.has_linear_part() && gram.n() <= 2 * gram.points.q.width();
}

// Q'V (m, width), column tiles shared out so that each is summed in one order.
template <class AnyPanels>
Matrix linear_moments(const Panels& q, const AnyPanels& v, Parallel& parallel) {
  Matrix sum = Matrix::Zero(q.width(), v.width());
  parallel.each_piece(v.width(), kMomentColumns, [&](Index begin, Index columns) {
    for (Index i = 0; i < q.count(); ++i)
      add_product_tn(sum.middleCols(begin, columns), 1.0, q.panel(i),
                     v.panel(i).middleCols(begin, columns).template cast<double>());
  });
  return sum;
}

}  // namespace

void gram_product(const Gram& gram, const Panels& v, Panels& out, Parallel& parallel,
                  const Beside* beside) {
  const Kernel& kernel = gram.kernel;
  const Points& points = gram.points;
  const bool in_tiles = linear_in_tiles(gram);
  const bool apart = kernel.has_linear_part() && !in_tiles;
  const auto moments = [&](const auto& of) {
    return apart ? linear_moments(points.q, of, parallel) : Matrix();
  };
  const Matrix linear = moments(v);
  const Matrix linear_beside = beside ? moments(beside->v) : Matrix();
  const auto fill = in_tiles ? &Kernel::full_tile : &Kernel::tile;
  const auto start_with = [&](const Matrix& linear_part) {
    return [&](Index i, Matrix& own) {
      if (apart) add_product(own, 1.0, points.q.panel(i), linear_part);
    };
  };
  const auto start = start_with(linear);
  if (kernel.has_own_part() || in_tiles)
    return symmetric_product(
        v, out, parallel,
        [&] {
          return
              [&](Index i, Index j, Matrix& tile) { (kernel.*fill)(points, i, points, j, tile); };
        },
        start, beside, start_with(linear_beside));
  parallel.each_striped(v.count(), stripe_of(v.count()), [&](Index i) {
    Matrix own = Matrix::Zero(kPanel, v.width());
    start(i, own);
    out.panel(i) = own;
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
