// Tiles of distances and products, summed in registers.
#pragma once

#include "core/base/elementary.hpp"
#include "core/base/sizes.hpp"

namespace ckce {

// out[i] = exp(x[i]), x <= 0
inline void exp_of_negative(const Lanes& x, double* out) {
  for (int i = 0; i < kLanes; ++i) out[i] = exp_of_negative(x[i]);
}

// What is summed over the coordinates: sum += term(x, y).
struct SquaredL2 {
  static void add(Lanes& sum, const Lanes& x, double y) { sum += (x - y) * (x - y); }
};
struct L1 {
  static void add(Lanes& sum, const Lanes& x, double y) { sum += (x - y).abs(); }
};
struct Dot {
  static void add(Lanes& sum, const Lanes& x, double y) { sum += x * y; }
};

// finish(i, j, sums, out) for kLanes rows i, ... of column j, where sums = sum_f term(a_if, b_jf)
// for two panels of m columns. kColumns at a time, so that the sums stay in registers.
template <class Term, Index kColumns, class Finish>
void tile_columns(const double* a, const double* b, Index m, MatrixRef out, Index j,
                  Finish finish) {
  for (Index i = 0; i < kPanel; i += kLanes) {
    Lanes sums[kColumns];
    for (Index c = 0; c < kColumns; ++c) sums[c].setZero();
    for (Index f = 0; f < m; ++f) {
      const Lanes x = Eigen::Map<const Lanes>(a + f * kPanel + i);
      for (Index c = 0; c < kColumns; ++c) Term::add(sums[c], x, b[f * kPanel + j + c]);
    }
    for (Index c = 0; c < kColumns; ++c) finish(i, j + c, sums[c], &out(i, j + c));
  }
}

// All columns of out.
template <class Term, class Finish>
void tile_of(const double* a, const double* b, Index m, MatrixRef out, Finish finish) {
  constexpr Index kColumns = 8;
  const Index whole = out.cols() / kColumns * kColumns;
  for (Index j = 0; j < whole; j += kColumns) tile_columns<Term, kColumns>(a, b, m, out, j, finish);
  for (Index j = whole; j < out.cols(); ++j) tile_columns<Term, 1>(a, b, m, out, j, finish);
}

}  // namespace ckce
