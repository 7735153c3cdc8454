// The diagonal of A = W K W, which the debiased value leaves out, without n solves.
//
// With a pivoted-Cholesky factor K = G G' + E and N = (G'G + ridge I)^-1 the diagonal of A is that
// of G N N G' and of what E changes, W E W - A E W - W E A to first order, W and A those of G G'.
// Where G misses little, E_ii / ridge^2 is enough of it. Where the spectrum of K decays slowly, all
// of it takes one product of K with G, and the rest is of second order in |E| / ridge.
#pragma once

#include "core/metrics/conjugate_gradients.hpp"

namespace ckce {

// A_ii (n,). The rank doubles until the terms sum_i A_ii norms_i change by less than 1e-3 of their
// sum. O(n rank (m + rank)), and where needed O(n^2 (m + rank)).
Vector diagonal_by_factor(const Gram& gram, const WeightedGram& weighted, const Samples& samples,
                          const Vector& norms, double ridge, Parallel& parallel);

}  // namespace ckce
