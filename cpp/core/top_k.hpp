// The k largest entries of each prediction in decreasing order (of equal ones the first column
// first), all others as one class, and each label by its rank: (n, m) becomes (n, k + 1). One pass
// checks the rows and reduces them.
#pragma once

#include <cstdint>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/validate.hpp"

namespace ckce {

// Writes (n, k + 1) entries, row after row, and n ranks; k < m. The last entry of a row is 1 minus
// the others, 0 if they sum to more. O(n m + n k log k): only the entries kept are sorted.
Report top_k(const Samples& samples, Index k, double sum_tolerance, double* kept,
             std::int64_t* ranks, Parallel& parallel);

}  // namespace ckce
