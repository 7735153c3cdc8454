#include "fourier.hpp"

#include <cmath>

#include "../elementary.hpp"

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
  if (sines.cwiseAbs().maxCoeff() <= kLargestAngle) {
    for (Index j = 0; j < count; ++j) {
      double* s = sines.col(j).data();
      double* c = cosines.col(j).data();
      for (Index i = 0; i < q.rows(); ++i) {
        double sine, cosine;
        sin_cos(s[i], sine, cosine);
        s[i] = sine * scale;
        c[i] = cosine * scale;
      }
    }
  } else {
    cosines = sines.unaryExpr([scale](double x) { return std::cos(x) * scale; });
    sines = sines.unaryExpr([scale](double x) { return std::sin(x) * scale; });
  }
}

}  // namespace ckce
