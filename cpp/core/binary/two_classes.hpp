// CKCE, JKCE and the test of calibration of two classes: exact, in O(n) or O(n log n), for every
// kernel whose own part is a function of p - p'.
#pragma once

#include <cstdint>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/kernels/kernel.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/metrics/ckce.hpp"
#include "core/metrics/jkce.hpp"

namespace ckce {

Solution ckce_two_classes(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          double ridge, bool full, Parallel& parallel);

JkceSums jkce_two_classes(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          bool full, Parallel& parallel);

// As `resample_features`; Gaussian own parts only.
Matrix resample_two_classes(const Kernel& kernel, const Samples& samples, double ridge,
                            Index n_resamples, std::uint64_t seed, Index table, Parallel& parallel);

// As `own_witness_exact`; Gaussian own parts only. (n, 2)
Matrix own_witness_two_classes(const Kernel& kernel, const Samples& samples, double ridge,
                               Parallel& parallel);

// Bytes that a solve of n rows takes at most.
double price_two_classes(const Kernel& kernel, double n, bool full);
// The same for label sets that are drawn.
double price_resamples(const Kernel& kernel, double n, double n_resamples, double table);

}  // namespace ckce
