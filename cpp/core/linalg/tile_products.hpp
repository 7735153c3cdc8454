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
  for (Index i = 0; i < kPanel; i += kLanes) {
    Lanes sums[kColumns];
    for (int c = 0; c < kColumns; ++c) sums[c] = Eigen::Map<const Lanes>(out + c * kPanel + i);
    for (Index j = 0; j < kPanel; ++j) {
      const Lanes t = Eigen::Map<const Lanes>(tile + j * kPanel + i);
      for (int c = 0; c < kColumns; ++c) sums[c] += t * v[c * kPanel + j];
    }
    for (int c = 0; c < kColumns; ++c) Eigen::Map<Lanes>(out + c * kPanel + i) = sums[c];
  }
}

// out (kPanel, kColumns) += tile' v
template <int kColumns>
void add_tile_columns_tn(const double* tile, const double* v, double* out) {
  constexpr int kWidth = Eigen::internal::packet_traits<double>::size;
  constexpr int kRows = kColumns <= 5 ? 4 : 2;  // of out at a time
  using Packet = Eigen::Array<double, kWidth, 1>;
  for (Index j = 0; j < kPanel; j += kRows) {
    Packet sums[kRows][kColumns];
    for (auto& row : sums)
      for (Packet& sum : row) sum.setZero();
    for (Index i = 0; i < kPanel; i += kWidth) {
      Packet x[kColumns];
      for (int c = 0; c < kColumns; ++c) x[c] = Eigen::Map<const Packet>(v + c * kPanel + i);
      for (int r = 0; r < kRows; ++r) {
        const Packet t = Eigen::Map<const Packet>(tile + (j + r) * kPanel + i);
        for (int c = 0; c < kColumns; ++c) sums[r][c] += t * x[c];
      }
    }
    for (int r = 0; r < kRows; ++r)
      for (int c = 0; c < kColumns; ++c) out[c * kPanel + j + r] += sums[r][c].sum();
  }
}

// Calls step(first column, integral_constant<columns>) with at most 8 columns at a time, evenly.
template <class Step>
void in_column_groups(Index columns, Step step) {
  const Index groups = (columns + 7) / 8;
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
