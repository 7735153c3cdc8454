// Tiles of distances by differences: exact for close pairs, and as fast as a product for small m.
#pragma once

#include "../types.hpp"

namespace ckce {

using Lanes = Eigen::Array<double, 8, 1>;

struct SquaredL2 {
  static void add(Lanes& sum, const Lanes& difference) { sum += difference * difference; }
};

struct L1 {
  static void add(Lanes& sum, const Lanes& difference) { sum += difference.abs(); }
};

// out(i, j) = finish(distance(a_i, b_j)) for two panels of m columns and all columns j of out. Four
// columns at a time, so that the running sums stay in registers.
template <class Norm, Index kColumns, class Finish>
void distance_columns(const double* a, const double* b, Index m, MatrixRef out, Index j,
                      Finish finish) {
  for (Index i = 0; i < kPanel; i += Lanes::SizeAtCompileTime) {
    Lanes sums[kColumns];
    for (Index c = 0; c < kColumns; ++c) sums[c].setZero();
    for (Index f = 0; f < m; ++f) {
      const Lanes x = Eigen::Map<const Lanes>(a + f * kPanel + i);
      for (Index c = 0; c < kColumns; ++c) Norm::add(sums[c], x - b[f * kPanel + j + c]);
    }
    for (Index c = 0; c < kColumns; ++c) Eigen::Map<Lanes>(&out(i, j + c)) = finish(sums[c]);
  }
}

template <class Norm, class Finish>
void distance_tile(const double* a, const double* b, Index m, MatrixRef out, Finish finish) {
  static_assert(kPanel % Lanes::SizeAtCompileTime == 0, "a panel is whole lanes");
  const Index in_fours = out.cols() / 4 * 4;
  for (Index j = 0; j < in_fours; j += 4) distance_columns<Norm, 4>(a, b, m, out, j, finish);
  for (Index j = in_fours; j < out.cols(); ++j) distance_columns<Norm, 1>(a, b, m, out, j, finish);
}

}  // namespace ckce
