// Products of a (kPanel, kPanel) tile with a few columns. Eigen packs the tile before it
// multiplies, which for few columns costs as much as the product; here sums stay in registers
// instead.
#pragma once

#include "core/base/sizes.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

// out (kPanel, kColumns) += tile v
template <int kColumns>
void add_tile_columns(const double* tile, const double* v, double* out) {
  using namespace Eigen::internal;
  for (Index i = 0; i < kPanel; i += 2 * kWidth) {
    Packet low[kColumns], high[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      low[c] = ploadu<Packet>(out + c * kPanel + i);
      high[c] = ploadu<Packet>(out + c * kPanel + i + kWidth);
    }
    for (Index j = 0; j < kPanel; ++j) {
      const Packet t_low = ploadu<Packet>(tile + j * kPanel + i);
      const Packet t_high = ploadu<Packet>(tile + j * kPanel + i + kWidth);
      for (int c = 0; c < kColumns; ++c) {
        const Packet x = pset1<Packet>(v[c * kPanel + j]);
        low[c] = pmadd(t_low, x, low[c]);
        high[c] = pmadd(t_high, x, high[c]);
      }
    }
    for (int c = 0; c < kColumns; ++c) {
      pstoreu(out + c * kPanel + i, low[c]);
      pstoreu(out + c * kPanel + i + kWidth, high[c]);
    }
  }
}

// out (kPanel, kColumns) += tile' v
template <int kColumns>
void add_tile_columns_tn(const double* tile, const double* v, double* out) {
  using namespace Eigen::internal;
  constexpr int kRows = 4 * kColumns + 5 <= kRegisters ? 4 : 2;  // of out at a time
  for (Index j = 0; j < kPanel; j += kRows) {
    Packet sums[kRows][kColumns];
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) sums[r][c] = pset1<Packet>(0.0);
    for (Index i = 0; i < kPanel; i += kWidth) {
      Packet t[kRows];
      for (int r = 0; r < kRows; ++r) t[r] = ploadu<Packet>(tile + (j + r) * kPanel + i);
      for (int c = 0; c < kColumns; ++c) {
        const Packet x = ploadu<Packet>(v + c * kPanel + i);
        for (int r = 0; r < kRows; ++r) sums[r][c] = pmadd(t[r], x, sums[r][c]);
      }
    }
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) out[c * kPanel + j + r] += predux(sums[r][c]);
  }
}

// Calls step(first column, integral_constant<columns>) with few columns at a time, evenly: two
// registers of sums for each, and three for what is multiplied.
template <class Step>
void in_column_groups(Index columns, Step step) {
  if (columns == 0) return;
  constexpr Index kMost = std::min(8, (kRegisters - 3) / 2);
  const Index groups = (columns + kMost - 1) / kMost;
  const Index width = (columns + groups - 1) / groups;
  for (Index first = 0; first < columns; first += width) {
    switch (std::min(width, columns - first)) {
      case 1:
        step(first, std::integral_constant<int, 1>());
        break;
      case 2:
        step(first, std::integral_constant<int, 2>());
        break;
      case 3:
        step(first, std::integral_constant<int, 3>());
        break;
      case 4:
        step(first, std::integral_constant<int, 4>());
        break;
      case 5:
        step(first, std::integral_constant<int, 5>());
        break;
      case 6:
        step(first, std::integral_constant<int, 6>());
        break;
      case 7:
        step(first, std::integral_constant<int, 7>());
        break;
      default:
        step(first, std::integral_constant<int, 8>());
    }
  }
}

// out += tile v for whole, contiguous panels v and out
template <class V, class Out>
void add_tile_product(const Matrix& tile, const V& v, Out&& out) {
  if (v.cols() >= kFewColumns) return add_product(out, 1.0, tile, v);
  in_column_groups(v.cols(), [&](Index first, auto columns) {
    add_tile_columns<columns>(tile.data(), v.data() + first * kPanel, out.data() + first * kPanel);
  });
}

// out += tile' v
template <class V, class Out>
void add_tile_product_tn(const Matrix& tile, const V& v, Out&& out) {
  if (v.cols() >= kFewColumns) return add_product_tn(out, 1.0, tile, v);
  in_column_groups(v.cols(), [&](Index first, auto columns) {
    add_tile_columns_tn<columns>(tile.data(), v.data() + first * kPanel,
                                 out.data() + first * kPanel);
  });
}

}  // namespace ckce
