// The witness of two classes at the sample's own rows, by cells: exact, O(n nodes).
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/types.hpp"
#include "core/binary/grid.hpp"

namespace ckce {

// As `own_witness_exact`, for the kernels `gaussian` and `linear_gaussian`. (n, 2)
Matrix own_witness_binary(const Grid& grid, const Samples& samples, bool linear, double ridge,
                          Parallel& parallel);

}  // namespace ckce
