// Value, Rbar and Kbar of gradient.hpp where K is a matrix.
#pragma once

#include "core/metrics/gradient.hpp"

namespace ckce {

struct DualGradient {
  double value = 0.0;
  Matrix probs;  // -Rbar F' (n, m): what comes through the residuals
  Matrix gram;   // Kbar (n, n), if the gradient goes through K
};

// gram is K (n, n), unweighted. O(n^3)
DualGradient gradient_dual(Matrix gram, const Samples& samples, const LabelKernel& label,
                           double ridge, Sides sides, Parallel& parallel);

}  // namespace ckce
