// Tiles of distances and products, summed in registers.
#pragma once

#include <iterator>

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

// Its exp is 1e-100, nothing beside k = 1. From less, products with K would be below 2e-308, where
// many CPUs take a hundred times as long.
constexpr double kLeastExponent = -230.0;

// column -> exp(column) for kLeastExponent <= x <= 0, to 2 units in the last place: 2^k p(r) with
// x = k log 2 + r, |r| <= log(2) / 2. p has the least relative error, 1.1e-17, of all polynomials
// of degree 11 with p(0) = p'(0) = 1, so that exp(0) = 1. Several registers take turns, because
// each step of p waits for the one before.
inline void exp_of_negative(double* column) {
  using namespace Eigen::internal;
  constexpr int kTurns = 4;
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0.693147180369123816490;  // its product with k is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kTerms[] = {2.5000072281462545e-08,
                               2.7630233929422184e-07,
                               2.7557586266515903e-06,
                               2.4801493136159967e-05,
                               0.00019841269506779463,
                               0.0013888888943597722,
                               0.008333333333494333,
                               0.041666666666530267,
                               0.16666666666666413,
                               0.5000000000000011,
                               1.0,
                               1.0};
  const Packet round = pset1<Packet>(kRound);
  for (Index i = 0; i < kPanel; i += kTurns * kWidth) {
    double* x = column + i;
    double shifted[kTurns * kWidth];  // k in the low bits
    Packet r[kTurns], p[kTurns];
    for (int t = 0; t < kTurns; ++t) {
      r[t] = ploadu<Packet>(x + t * kWidth);
      const Packet sum = pmadd(r[t], pset1<Packet>(kLog2E), round);
      pstoreu(shifted + t * kWidth, sum);
      const Packet k = psub(sum, round);
      r[t] = pnmadd(k, pset1<Packet>(kLn2High), r[t]);
      r[t] = pnmadd(k, pset1<Packet>(kLn2Low), r[t]);
      p[t] = pset1<Packet>(kTerms[0]);
    }
    for (std::size_t j = 1; j < std::size(kTerms); ++j)
      for (int t = 0; t < kTurns; ++t) p[t] = pmadd(p[t], r[t], pset1<Packet>(kTerms[j]));
    for (int t = 0; t < kTurns; ++t) pstoreu(x + t * kWidth, p[t]);
    for (int l = 0; l < kTurns * kWidth; ++l)
      x[l] = double_of(bits_of(x[l]) + (bits_of(shifted[l]) << 52));
  }
}

// column -> exp(exponent(row, column)) in place: for kWidth rows at a time.
template <class Exponent>
void exp_of_column(double* column, Exponent exponent) {
  using namespace Eigen::internal;
  for (Index i = 0; i < kPanel; i += kWidth) {
    const Packet x = exponent(i, ploadu<Packet>(column + i));
    pstoreu(column + i, pmax(pmin(x, pset1<Packet>(0.0)), pset1<Packet>(kLeastExponent)));
  }
  exp_of_negative(column);
}

}  // namespace ckce
