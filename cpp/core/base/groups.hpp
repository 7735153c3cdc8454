// Rows that depend on each other: tokens of one text, questions on one passage. What a diagonal is
// for independent rows, the blocks of the groups are for these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/base/residuals.hpp"
#include "core/base/samples.hpp"
#include "core/base/types.hpp"

namespace ckce {

class Groups {
 public:
  // codes (n,): 0 .. count - 1, each at least once; rows of a group stay in their order. O(n)
  Groups(const std::int64_t* codes, Index n) {
    Index count = 0;
    for (Index i = 0; i < n; ++i) {
      if (codes[i] < 0 || codes[i] >= n) throw std::invalid_argument("groups must be 0, 1, 2, ...");
      count = std::max<Index>(count, codes[i] + 1);
    }
    begins_.assign(as_size(count) + 1, 0);
    for (Index i = 0; i < n; ++i) ++begins_[as_size(codes[i]) + 1];
    for (std::size_t g = 1; g < begins_.size(); ++g) begins_[g] += begins_[g - 1];
    order_.resize(as_size(n));
    std::vector<Index> next(begins_.begin(), begins_.end() - 1);
    for (Index i = 0; i < n; ++i) order_[as_size(next[as_size(codes[i])]++)] = i;
  }

  Index count() const { return static_cast<Index>(begins_.size()) - 1; }
  // Where group g begins among the rows in the order of their groups.
  Index begin(Index g) const { return begins_[as_size(g)]; }
  Index size(Index g) const { return begin(g + 1) - begin(g); }
  // `count` rows from place `begin` on, in the order of their groups
  std::vector<Index> rows(Index begin, Index count) const {
    return {order_.begin() + begin, order_.begin() + begin + count};
  }
  std::vector<Index> rows(Index g) const { return rows(begin(g), size(g)); }

  // The group of each row. (n,)
  std::vector<Index> group_of_rows() const {
    std::vector<Index> group(order_.size());
    for (Index g = 0; g < count(); ++g)
      for (Index k = begin(g); k < begin(g + 1); ++k) group[as_size(order_[as_size(k)])] = g;
    return group;
  }

  // Consecutive groups of at most `rows` rows together, or one group that is larger: the first
  // group of each batch, and count() at the end.
  std::vector<Index> batches(Index rows) const {
    std::vector<Index> firsts = {0};
    for (Index g = 1; g < count(); ++g)
      if (begin(g + 1) - begin(firsts.back()) > rows) firsts.push_back(g);
    firsts.push_back(count());
    return firsts;
  }

 private:
  std::vector<Index> begins_;  // (count + 1,)
  std::vector<Index> order_;   // (n,)
};

// Rows from anywhere: Q, then R in its place, and the weights.
struct GatheredRows {
  GatheredRows(const Samples& samples, std::vector<Index> which)
      : rows(std::move(which)), q(count(), samples.m()), weights(count()), labels(rows.size()) {
    for (Index k = 0; k < count(); ++k) {
      const Index row = rows[as_size(k)];
      samples.probs.load(row, 1, q.middleRows(k, 1));
      weights[k] = samples.weight(row);
      labels[as_size(k)] = samples.labels[row];
    }
  }

  Index count() const { return static_cast<Index>(rows.size()); }
  void turn_into_residuals() { residuals_in_place(labels.data(), q); }
  // As samples of their own, as long as they are not residuals.
  Samples samples() const {
    Samples own;
    own.probs.data = reinterpret_cast<const char*>(q.data());
    own.probs.n = q.rows();
    own.probs.m = q.cols();
    own.probs.row_stride = sizeof(double);
    own.probs.col_stride = static_cast<Index>(sizeof(double)) * q.rows();
    own.labels = labels.data();
    own.weights = weights.data();
    return own;
  }

  std::vector<Index> rows;
  Matrix q;        // (rows, m)
  Vector weights;  // (rows,)
  std::vector<std::int64_t> labels;
};

}  // namespace ckce
