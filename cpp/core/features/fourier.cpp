#include "fourier.hpp"

#include <cmath>

#include "../elementary.hpp"

namespace ckce {

namespace {

// phi = [q if it is wanted | cos | sin] / sqrt(D)
template <class Scalar, class Q, class Phi>
void fill_fourier(const Q& q, const Eigen::MatrixX<Scalar>& frequencies, bool linear_part,
                  Phi phi) {
  const Index count = frequencies.rows();
  const Index first = linear_part ? frequencies.cols() : 0;
  const auto scale = static_cast<Scalar>(1.0 / std::sqrt(static_cast<double>(count)));
  if (linear_part) phi.leftCols(first) = q;
  auto cosines = phi.middleCols(first, count);
  auto sines = phi.middleCols(first + count, count);
  sines.setZero();
  add_product_nt(sines, Scalar(1), q, frequencies);
  if (sines.cwiseAbs().maxCoeff() <= kLargestAngle<Scalar>) {
    for (Index j = 0; j < count; ++j) {
      Scalar* s = sines.col(j).data();
      Scalar* c = cosines.col(j).data();
      for (Index i = 0; i < q.rows(); ++i) {
        Scalar sine, cosine;
        sin_cos(s[i], sine, cosine);
        s[i] = sine * scale;
        c[i] = cosine * scale;
      }
    }
  } else {
    cosines = sines.unaryExpr([scale](Scalar x) { return std::cos(x) * scale; });
    sines = sines.unaryExpr([scale](Scalar x) { return std::sin(x) * scale; });
  }
}

}  // namespace

void Fourier::fill(Index, const In& q, MatrixRef phi) const {
  fill_fourier<double>(q, frequencies_, linear_part_, phi);
}

void Fourier::fill(Index, const FloatIn& q, FloatMatrixRef phi) const {
  fill_fourier<float>(q, float_frequencies_, linear_part_, phi);
}

}  // namespace ckce
