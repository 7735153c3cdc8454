#include "core/features/fourier.hpp"

#include <cmath>
#include <utility>

#include "core/base/elementary.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

namespace {

// The least k >= 1 with |t|^j / (2^(j-1) j!) < 1e-17 for all j >= k: from there on the Chebyshev
// coefficients of cos(t x) and sin(t x) on [-1, 1], 2 J_j(t), are below round-off.
Index chebyshev_terms(double t, Index most) {
  double coefficient = 2.0;
  Index k = 0;
  while (k < most && (coefficient >= 1e-17 || static_cast<double>(k) < t / 2.0))
    coefficient *= t / 2.0 / static_cast<double>(++k);
  return std::max<Index>(k, 1);
}

// R (k, k) of c = U R with orthonormal columns in U, by Householder's reflections; c is
// overwritten.
Matrix triangular_factor(Matrix& c) {
  for (Index j = 0; j < c.cols(); ++j) {
    Vector v = c.col(j).tail(c.rows() - j);
    v[0] += std::copysign(v.norm(), v[0]);
    const double half_norm = v.squaredNorm() / 2.0;
    if (half_norm == 0.0) continue;
    for (Index other = j; other < c.cols(); ++other) {
      auto column = c.col(other).tail(v.size());
      column -= (v.dot(column) / half_norm) * v;
    }
  }
  return c.topRows(c.cols()).triangularView<Eigen::Upper>();
}

}  // namespace

// With two classes frequencies orthogonal to (1, 1) see x = q_2 - q_1 only. On [-1, 1] the 2 D
// functions cos(t x), sin(t x) are T(x) C', T the first k Chebyshev polynomials, to round-off, with
// k about 25 where D = 100. Only Phi Phi' = T C'C T' matters, so with C = U F' the features T F do
// as well: k^2 work per row, not 4 D^2. Returns F' (k, k), or nothing where k is not small.
Matrix chebyshev_factor(const Matrix& frequencies) {
  const Index count = frequencies.rows();
  if (frequencies.cols() != 2 || (frequencies.rowwise().sum().array() != 0.0).any()) return {};
  const auto t = frequencies.col(1).array();
  const Index k = chebyshev_terms(t.abs().maxCoeff(), count + 1);
  if (k > count) return {};
  Matrix c = Matrix::Zero(2 * count, k);  // by the discrete cosine transform of values at k nodes
  for (Index node = 0; node < k; ++node) {
    const double angle =
        3.14159265358979323846 * (static_cast<double>(node) + 0.5) / static_cast<double>(k);
    Vector values(2 * count);
    values << (t * std::cos(angle)).cos(), (t * std::cos(angle)).sin();
    for (Index j = 0; j < k; ++j)
      c.col(j) += (j == 0 ? 1.0 : 2.0) / static_cast<double>(k) *
                  std::cos(static_cast<double>(j) * angle) * values;
  }
  c /= std::sqrt(static_cast<double>(count));
  return triangular_factor(c);
}

namespace {

template <class Scalar, class Q, class Phi>
void fill_chebyshev(const Q& q, const Eigen::MatrixX<Scalar>& factor, Phi phi) {
  const Index k = factor.rows();
  Eigen::MatrixX<Scalar> t(q.rows(), k);
  const auto x = q.col(1) - q.col(0);
  t.col(0).setOnes();
  if (k > 1) t.col(1) = x;
  for (Index j = 2; j < k; ++j)
    t.col(j) = (t.col(1) * Scalar(2)).cwiseProduct(t.col(j - 1)) - t.col(j - 2);
  phi.setZero();
  add_product_nt(phi, Scalar(1), t, factor);
}

template <class Scalar, class Q, class Phi>
void fill_trigonometric(const Q& q, const Eigen::MatrixX<Scalar>& frequencies, Phi phi) {
  const Index count = frequencies.rows();
  const auto scale = static_cast<Scalar>(1.0 / std::sqrt(static_cast<double>(count)));
  auto cosines = phi.leftCols(count);
  auto sines = phi.rightCols(count);
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

// phi = [q if it is wanted | cos | sin] / sqrt(D)
template <class Scalar, class Q, class Phi>
void fill_fourier(const Q& q, const Eigen::MatrixX<Scalar>& frequencies,
                  const Eigen::MatrixX<Scalar>& chebyshev, bool linear_part, Phi phi) {
  const Index first = linear_part ? q.cols() : 0;
  if (linear_part) phi.leftCols(first) = q;
  auto rest = phi.rightCols(phi.cols() - first);
  if (chebyshev.size() > 0)
    fill_chebyshev<Scalar>(q, chebyshev, rest);
  else
    fill_trigonometric<Scalar>(q, frequencies, rest);
}

}  // namespace

Fourier::Fourier(Matrix frequencies, bool linear_part)
    : Fourier(frequencies, chebyshev_factor(frequencies), linear_part) {}

Fourier::Fourier(Matrix frequencies, Matrix chebyshev, bool linear_part)
    : frequencies_(std::move(frequencies)),
      float_frequencies_(frequencies_.cast<float>()),
      chebyshev_(std::move(chebyshev)),
      float_chebyshev_(chebyshev_.cast<float>()),
      trigonometric_(chebyshev_.size() > 0 ? chebyshev_.rows() : 2 * frequencies_.rows()),
      linear_part_(linear_part) {}

void Fourier::fill(Index, const In& q, MatrixRef phi) const {
  fill_fourier<double>(q, frequencies_, chebyshev_, linear_part_, phi);
}

// cos(w'q)' = -sin(w'q) w and sin(w'q)' = cos(w'q) w; with phi = T(x) F, T_j' = j U_(j-1), U the
// Chebyshev polynomials of the second kind, and x = q_2 - q_1.
void Fourier::pull_back(const In& q, const In& phi, const In& phi_bar, MatrixRef q_bar) const {
  const Index first = linear_part_ ? q.cols() : 0;
  if (linear_part_) q_bar += phi_bar.leftCols(first);
  const auto bar = phi_bar.rightCols(trigonometric_);
  if (chebyshev_.size() == 0) {
    const Index count = frequencies_.rows();
    const auto cosines = phi.middleCols(first, count);
    const auto sines = phi.rightCols(count);
    const Matrix slope =
        bar.rightCols(count).cwiseProduct(cosines) - bar.leftCols(count).cwiseProduct(sines);
    return add_product(q_bar, 1.0, slope, frequencies_);
  }
  const Index k = chebyshev_.rows();
  const Matrix t_bar = product(bar, chebyshev_);
  const Vector x = q.col(1) - q.col(0);
  Vector before = Vector::Zero(q.rows());  // U_(j-2)
  Vector u = Vector::Ones(q.rows());       // U_(j-1)
  Vector x_bar = Vector::Zero(q.rows());
  for (Index j = 1; j < k; ++j) {
    x_bar += static_cast<double>(j) * t_bar.col(j).cwiseProduct(u);
    const Vector next = 2.0 * x.cwiseProduct(u) - before;
    before = u;
    u = next;
  }
  q_bar.col(1) += x_bar;
  q_bar.col(0) -= x_bar;
}

// Frequencies group, group + groups, group + 2 groups, ... are left out. None for two classes,
// whose features mix all frequencies.
Vector Fourier::without(Index group, Index groups) const {
  const Index count = frequencies_.rows();
  if (chebyshev_.size() > 0 || count < groups) return {};
  Vector factors = Vector::Ones(d());
  auto cosines = factors.segment(d() - 2 * count, count);
  for (Index j = group; j < count; j += groups) cosines[j] = 0.0;
  cosines *= std::sqrt(static_cast<double>(count) / cosines.sum());
  factors.tail(count) = cosines;
  return factors;
}

void Fourier::fill(Index, const FloatIn& q, FloatMatrixRef phi) const {
  fill_fourier<float>(q, float_frequencies_, float_chebyshev_, linear_part_, phi);
}

}  // namespace ckce
