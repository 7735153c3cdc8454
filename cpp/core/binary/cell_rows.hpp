// One block of rows, sorted by cell.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/binary/binary_rows.hpp"
#include "core/binary/grid.hpp"

namespace ckce {

class CellRows : public BinaryRows {
 public:
  explicit CellRows(const Grid& grid) : grid_(grid), cell_(kBlock), order_(kBlock) {}

  void load(const Samples& samples, Index block) {
    BinaryRows::load(samples, block * kBlock, std::min(kBlock, samples.n() - block * kBlock));
    for (Index i = 0; i < rows; ++i) cell_[i] = grid_.cell(p[i]);
    sort();
  }

  Index row(Index place) const { return order_[place]; }
  std::int64_t cell(Index place) const { return cell_[order_[place]]; }
  double t(Index i) const { return grid_.place(p[i], cell_[i]); }

  // visit(cell, first, last) for each cell, whose rows are row(first) .. row(last - 1)
  template <class Visit>
  void each_cell(Visit visit) const {
    for (Index first = 0; first < rows;) {
      Index last = first + 1;
      while (last < rows && cell(last) == cell(first)) ++last;
      visit(cell(first), first, last);
      first = last;
    }
  }

 private:
  // Rows of a cell stay in their order.
  void sort() {
    const auto [least, most] = std::minmax_element(cell_.data(), cell_.data() + rows);
    const std::int64_t from = *least;
    const std::int64_t range = *most - from + 1;
    if (range > kBlock) {
      std::iota(order_.data(), order_.data() + rows, 0);
      std::sort(order_.data(), order_.data() + rows,
                [&](int a, int b) { return cell_[a] != cell_[b] ? cell_[a] < cell_[b] : a < b; });
      return;
    }
    ends_.assign(static_cast<std::size_t>(range) + 1, 0);
    for (Index i = 0; i < rows; ++i) ++ends_[static_cast<std::size_t>(cell_[i] - from) + 1];
    for (std::size_t c = 1; c < ends_.size(); ++c) ends_[c] += ends_[c - 1];
    for (Index i = 0; i < rows; ++i)
      order_[ends_[static_cast<std::size_t>(cell_[i] - from)]++] = static_cast<int>(i);
  }

  const Grid& grid_;
  Eigen::Array<std::int64_t, Eigen::Dynamic, 1> cell_;
  Eigen::ArrayXi order_;
  std::vector<Index> ends_;
};

}  // namespace ckce
