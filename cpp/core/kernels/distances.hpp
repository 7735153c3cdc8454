// Tiles of distances and products, summed in registers.
#pragma once

#include "core/base/elementary.hpp"
#include "core/base/sizes.hpp"

namespace ckce {

// What is summed over the coordinates: sum += term(x, y).
struct SquaredL2 {
  static Packet add(const Packet& sum, const Packet& x, const Packet& y) {
    const Packet difference = Eigen::internal::psub(x, y);
    return Eigen::internal::pmadd(difference, difference, sum);
  }
};
struct L1 {
  static Packet add(const Packet& sum, const Packet& x, const Packet& y) {
    return Eigen::internal::padd(sum, Eigen::internal::pabs(Eigen::internal::psub(x, y)));
  }
};
struct Dot {
  static Packet add(const Packet& sum, const Packet& x, const Packet& y) {
    return Eigen::internal::pmadd(x, y, sum);
  }
};

// sums(i, j) += sum_f term(a_if, b_jf) over m columns of two panels; from zero where `from_zero`.
// kColumns at a time, so that the sums stay in registers.
template <class Term, int kColumns>
void add_terms(const double* a, const double* b, Index m, bool from_zero, double* sums,
               Index stride) {
  using namespace Eigen::internal;
  for (Index i = 0; i < kPanel; i += 2 * kWidth) {
    Packet low[kColumns], high[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      low[c] = from_zero ? pset1<Packet>(0.0) : ploadu<Packet>(sums + c * stride + i);
      high[c] = from_zero ? pset1<Packet>(0.0) : ploadu<Packet>(sums + c * stride + i + kWidth);
    }
    for (Index f = 0; f < m; ++f) {
      const Packet x_low = ploadu<Packet>(a + f * kPanel + i);
      const Packet x_high = ploadu<Packet>(a + f * kPanel + i + kWidth);
      for (int c = 0; c < kColumns; ++c) {
        const Packet y = pset1<Packet>(b[f * kPanel + c]);
        low[c] = Term::add(low[c], x_low, y);
        high[c] = Term::add(high[c], x_high, y);
      }
    }
    for (int c = 0; c < kColumns; ++c) {
      pstoreu(sums + c * stride + i, low[c]);
      pstoreu(sums + c * stride + i + kWidth, high[c]);
    }
  }
}

// out(i, j) = sum_f term(a_if, b_jf) for two panels of m columns. Each column goes to end(j,
// column) while it is in L1.
template <class Term, class End>
void tile_of(const double* a, const double* b, Index m, MatrixRef out, End end) {
  constexpr int kColumns = kRegisters / 4;  // half of the registers hold sums
  const Index whole = out.cols() / kColumns * kColumns;
  Index f = 0;
  do {  // few f at a time, because panels of many would not stay in cache
    const Index terms = std::min(kFewClasses, m - f);
    const double* x = a + f * kPanel;
    const double* y = b + f * kPanel;
    const bool last = f + terms == m;
    for (Index j = 0; j < out.cols();) {
      const Index columns = j < whole ? kColumns : 1;
      double* sums = out.col(j).data();
      if (j < whole)
        add_terms<Term, kColumns>(x, y + j, terms, f == 0, sums, out.outerStride());
      else
        add_terms<Term, 1>(x, y + j, terms, f == 0, sums, out.outerStride());
      for (const Index next = j + columns; j < next; ++j)
        if (last) end(j, out.col(j).data());
    }
    f += terms;
  } while (f < m);
}

// column -> exp(exponent(row, column)) in place: for kWidth rows at a time.
template <class Exponent>
void exp_of_column(double* column, Exponent exponent) {
  using namespace Eigen::internal;
  for (Index i = 0; i < kPanel; i += kWidth) {
    const Packet x = exponent(i, ploadu<Packet>(column + i));
    pstoreu(column + i, pmax(pmin(x, pset1<Packet>(0.0)), pset1<Packet>(kLeastExponent)));
  }
  // The count is fixed: the compiler leaves no scalar code behind.
  for (Index i = 0; i < kPanel; ++i) column[i] = exp_of_negative(column[i]);
}

}  // namespace ckce
