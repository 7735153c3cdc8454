// CKCE, eq. (6) of the paper: the squared Hilbert-Schmidt distance of two conditional mean
// operators.
//
// Its estimate, eq. (7), is Tr V'K V with (K + ridge I) V = R F, ridge = lambda n: the bracket of
// eq. (7) is R L R', so one solve with m right-hand sides is enough and W is never formed.
//   ckce_exact     K of a kernel. By factorisation, or by conjugate gradients: the ridge n^(3/4)
//                  keeps cond(K + ridge I) near 10, a pivoted-Cholesky preconditioner brings it
//                  near 1, and a few products with K are enough, in O(n m) memory
//   ckce_gram      K as a matrix: for small n, for the dual of a feature map with more features
//   than
//                  rows, and for kernels that only Python knows
//   ckce_features  Phi Phi' in place of K, eq. (9): |(Phi'Phi + ridge I)^-1 Phi'R F|_F^2
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/stream/moments.hpp"

namespace ckce {

// `full` estimators fill everything, the others only `value`, `per_class` and what it took.
struct Solution {
  double value = 0.0;
  double bound = 0.0;   // |value - exact| <= bound
  double debias = 0.0;  // sum_i A_ii |r_i|^2, A = W K W: the diagonal of the trace of eq. (7); of
                        // samples in groups the blocks of the groups, sum_g Tr R_g'A_gg R_g
  double floor = 0.0;   // sum_i A_ii E|r_i|^2, the mean of the value under calibration of
                        // independent rows; NaN of samples in groups
  Vector influence;     // (n,), psi_i
  Vector per_class;     // (m,), contributions that add up to the value
  Vector replicates;    // values without one group of random features each; empty for others
  Index iterations = 0;
  Index debias_rank = 0;      // of the factor that debias and floor come from, if not exact
  double debias_error = 0.0;  // about the most that they can be off then
};

// kIterate steps by blocks first where that pays, kBlocks at any size.
enum class Solver { kFactorise, kIterate, kBlocks };

// Up to here a factorisation is at hand: for debias terms, and where the iteration is long.
constexpr Index kFactorisationLimit = 2000;

// tol bounds the relative error of the value. O(n^3) by factorisation, O(n^2 m) per iteration.
Solution ckce_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    double ridge, double tol, Solver solver, bool full, Parallel& parallel);

// gram is K (n, n), unweighted, its entries right to entry_error. O(n^3 / 3); O(n^3) more if
// `full`. Memory 2 n^2.
Solution ckce_gram(const Matrix& gram, double entry_error, const Samples& samples,
                   const LabelKernel& label, double ridge, bool full, Parallel& parallel);

// Fills debias term and floor of a solution from the same K. O(n^3), memory 2 n^2.
void add_gram_terms(const Matrix& gram, const Samples& samples, const LabelKernel& label,
                    double ridge, Solution& solution, Parallel& parallel);

// `full` takes a second pass over the rows; certified features give a bound on the distance to CKCE
// under K, others one on rounding alone; who does not ask for it saves O(d^3). O(n d^2 + d^3)
Solution ckce_features(const Features& features, const Samples& samples, const LabelKernel& label,
                       double ridge, Precision precision, bool full, Parallel& parallel,
                       bool bounded = true);

}  // namespace ckce
