// a'b without rows that leave most of a register empty. With AVX-512 Eigen takes the last rows of
// a'b, too few for a register, four, two and one at a time, and each of these passes costs as much
// as a whole register. Here zeros fill it. Each sum has the same terms in the same order, so the
// same bits.
#pragma once

#include "core/base/types.hpp"

namespace ckce {

template <class Scalar>
constexpr Index kRegister = Eigen::internal::packet_traits<Scalar>::size;

// How many of the last rows of out += a'b to fill up; 0 where it would not pay.
template <class Out>
Index uneven_rows(const Out& out, Index depth) {
#if defined(EIGEN_VECTORIZE_AVX512)
  constexpr Index kFew = 32;
  constexpr Index kFull = kRegister<typename Out::Scalar>;
  const Index rest = out.rows() % kFull;
  const Index ones = rest % 4;  // of float32 each is a pass
  const Index passes = rest / 8 + rest % 8 / 4 + (kFull == 8 ? ones / 2 + ones % 2 : ones);
  if (passes > 1 && out.cols() >= kFew && depth >= kFew) return out.rows() % (3 * kFull);
#else
  static_cast<void>(out);
  static_cast<void>(depth);
#endif
  return 0;
}

// out + scale a'b, and more rows up to whole registers
template <class Out, class A, class B>
auto filled_sum(const Out& out, typename Out::Scalar scale, const A& a, const B& b) {
  using Sum = Eigen::MatrixX<typename Out::Scalar>;
  constexpr Index kFull = kRegister<typename Out::Scalar>;
  const Index rows = (out.rows() + kFull - 1) / kFull * kFull;
  Sum filled = Sum::Zero(a.rows(), rows);
  filled.leftCols(a.cols()) = a;
  Sum sum = Sum::Zero(rows, b.cols());
  sum.topRows(out.rows()) = out;
  sum.noalias() += scale * filled.transpose() * b;
  return sum;
}

// out += scale a'b
template <class Out, class A, class B>
void add_tn(Out& out, typename Out::Scalar scale, const A& a, const B& b) {
  const Index uneven = uneven_rows(out, a.rows());
  const Index even = out.rows() - uneven;
  if (even > 0) out.topRows(even).noalias() += scale * a.leftCols(even).transpose() * b;
  if (uneven == 0) return;
  auto last = out.bottomRows(uneven);
  last = filled_sum(last, scale, a.rightCols(uneven), b).topRows(uneven);
}

// The lower triangle of out += a'a
template <class Out, class A>
void add_lower_gram(Out& out, const A& a) {
  const Index uneven = uneven_rows(out, a.rows());
  const Index even = out.rows() - uneven;
  out.topLeftCorner(even, even)
      .template selfadjointView<Eigen::Lower>()
      .rankUpdate(a.leftCols(even).transpose());
  if (uneven == 0) return;
  const auto sum = filled_sum(out.bottomRows(uneven), 1, a.rightCols(uneven), a);
  out.bottomLeftCorner(uneven, even) = sum.topLeftCorner(uneven, even);
  out.bottomRightCorner(uneven, uneven).template triangularView<Eigen::Lower>() =
      sum.block(0, even, uneven, uneven);
}

}  // namespace ckce
