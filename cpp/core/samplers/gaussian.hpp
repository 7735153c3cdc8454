// Independent draws, frequency after frequency (Rahimi and Recht 2007).
#pragma once

#include "core/base/random.hpp"
#include "core/base/types.hpp"

namespace ckce {

// Uniforms in (0, 1), (count, dimension)
inline Matrix independent_uniforms(Index count, Index dimension, SplitMix64& random) {
  Matrix u(count, dimension);
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < dimension; ++j) u(i, j) = random.uniform();
  return u;
}

}  // namespace ckce
