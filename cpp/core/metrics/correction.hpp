// E[e_Y - q | q] as miscalibration smooths it: at any predictions, at the sample's own rows, and
// how far it may be off.
#pragma once

#include <cstdint>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/metrics/miscalibration.hpp"

namespace ckce {

// The correction at other predictions. (rows, m)
Matrix correction(const Features& features, const Probs& probs, const Matrix& coefficients,
                  const Vector& fit, Parallel& parallel);
// The same at the sample's own rows, each without (one copy of) its own label:
// (f_i - A_ii r_i) / max(1 - a_i, 1/2), A_ii and a_i times w_i where w_i < 1.
Matrix own_correction(const Features& features, const Samples& samples, const Miscalibration& found,
                      Parallel& parallel);

// How far the correction at other predictions may be off.
struct CorrectionErrors {
  Matrix draws;  // (rows classes, draws), a draw is a column of the correction of some classes in
                 // column order: rows (groups) change their sign at random
  Matrix variance;  // (rows, m), of labels drawn from the predictions: what no residual shows where
                    // a class is rare
  Matrix again;     // (rows, m), the correction of a sample whose residuals are the correction: it
                    // differs from the correction as that does from the truth, to first order
  Matrix freedom;   // (rows, m), degrees of freedom of the drawn variance, 2 (sum e^2)^2 / sum e^4
};

// The draws of `classes` classes from `first` on: all of them may not fit into memory.
// O((n + rows) min(d, rows) classes draws)
CorrectionErrors correction_errors(const Features& features, const Samples& samples,
                                   const Miscalibration& found, const Probs& at, Index first,
                                   Index classes, Index draws, std::uint64_t seed,
                                   Parallel& parallel);

}  // namespace ckce
