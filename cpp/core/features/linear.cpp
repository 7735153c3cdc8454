#include "core/features/linear.hpp"

namespace ckce {

void LinearFeatures::fill(Index, const In& q, MatrixRef phi) const { phi = q; }

void LinearFeatures::pull_back(const In&, const In&, const In& phi_bar, MatrixRef q_bar) const {
  q_bar += phi_bar;
}

}  // namespace ckce
