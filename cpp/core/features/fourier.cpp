#include "fourier.hpp"

#include <cmath>

namespace ckce {

void Fourier::fill(Index, const In& q, MatrixRef phi) const {
  const Index count = frequencies_.rows();
  const Index first = linear_part_ ? frequencies_.cols() : 0;
  const double scale = 1.0 / std::sqrt(static_cast<double>(count));
  if (linear_part_) phi.leftCols(first) = q;
  auto cosines = phi.middleCols(first, count);
  auto sines = phi.middleCols(first + count, count);
  sines.setZero();
  add_product_nt(sines, 1.0, q, frequencies_);
  for (Index j = 0; j < count; ++j) {  // a column is contiguous, so every element is vectorised
    cosines.col(j).array() = sines.col(j).array().cos() * scale;
    sines.col(j).array() = sines.col(j).array().sin() * scale;
  }
}

}  // namespace ckce
