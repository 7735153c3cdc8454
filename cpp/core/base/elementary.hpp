// sin and cos without branches, tables and divisions, so that the compiler turns loops over them
// into vector code on every instruction set. Taylor polynomials: |error| below 3e-16.
#pragma once

#include <cstdint>
#include <cstring>

namespace ckce {

constexpr double kRound = 0x1.8p52;  // x + kRound holds round(x) in its low bits

inline std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double double_of(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <class Scalar>
constexpr Scalar kLargestAngle =
    sizeof(Scalar) == 8 ? 1e5 : 5e3;  // up to here pi/2 in parts is enough

// sin(x) and cos(x) for |x| <= kLargestAngle: x = k pi/2 + r, |r| <= pi/4.
inline void sin_cos(double x, double& sine, double& cosine) {
  constexpr double kTwoOverPi = 0.6366197723675814;
  constexpr double kHalfPi1 = 1.5707963267341256;  // 33 bits: products with k are exact
  constexpr double kHalfPi2 = 6.077100506303966e-11;
  constexpr double kHalfPi3 = 2.0222662487959506e-21;
  const double shifted = x * kTwoOverPi + kRound;
  const double k = shifted - kRound;
  const double r = ((x - k * kHalfPi1) - k * kHalfPi2) - k * kHalfPi3;
  const double r2 = r * r;
  double s = -1.0 / 1307674368000.0;
  s = s * r2 + 1.0 / 6227020800.0;
  s = s * r2 - 1.0 / 39916800.0;
  s = s * r2 + 1.0 / 362880.0;
  s = s * r2 - 1.0 / 5040.0;
  s = s * r2 + 1.0 / 120.0;
  s = s * r2 - 1.0 / 6.0;
  s = r + r * r2 * s;
  double c = 1.0 / 20922789888000.0;
  c = c * r2 - 1.0 / 87178291200.0;
  c = c * r2 + 1.0 / 479001600.0;
  c = c * r2 - 1.0 / 3628800.0;
  c = c * r2 + 1.0 / 40320.0;
  c = c * r2 - 1.0 / 720.0;
  c = c * r2 + 1.0 / 24.0;
  c = c * r2 - 0.5;
  c = c * r2 + 1.0;
  const std::uint64_t quadrant = bits_of(shifted);
  const bool odd = quadrant & 1;
  sine = double_of(bits_of(odd ? c : s) ^ ((quadrant & 2) << 62));
  cosine = double_of(bits_of(odd ? s : c) ^ (((quadrant + 1) & 2) << 62));
}

// The same in float32, to 1e-7.
inline void sin_cos(float x, float& sine, float& cosine) {
  constexpr float kRoundFloat = 0x1.8p23F;
  constexpr float kHalfPi1 = 1.5703125F;  // 8 bits
  constexpr float kHalfPi2 = 4.837512969970703125e-4F;
  constexpr float kHalfPi3 = 7.54978995489188216e-8F;
  const float shifted = x * 0.636619772F + kRoundFloat;
  const float k = shifted - kRoundFloat;
  const float r = ((x - k * kHalfPi1) - k * kHalfPi2) - k * kHalfPi3;
  const float r2 = r * r;
  float s = 1.0F / 362880.0F;
  s = s * r2 - 1.0F / 5040.0F;
  s = s * r2 + 1.0F / 120.0F;
  s = s * r2 - 1.0F / 6.0F;
  s = r + r * r2 * s;
  float c = -1.0F / 3628800.0F;
  c = c * r2 + 1.0F / 40320.0F;
  c = c * r2 - 1.0F / 720.0F;
  c = c * r2 + 1.0F / 24.0F;
  c = c * r2 - 0.5F;
  c = c * r2 + 1.0F;
  std::uint32_t quadrant, sine_bits, cosine_bits;
  std::memcpy(&quadrant, &shifted, sizeof quadrant);
  const bool odd = quadrant & 1;
  const float s_swapped = odd ? c : s;
  const float c_swapped = odd ? s : c;
  std::memcpy(&sine_bits, &s_swapped, sizeof sine_bits);
  std::memcpy(&cosine_bits, &c_swapped, sizeof cosine_bits);
  sine_bits ^= (quadrant & 2) << 30;
  cosine_bits ^= ((quadrant + 1) & 2) << 30;
  std::memcpy(&sine, &sine_bits, sizeof sine);
  std::memcpy(&cosine, &cosine_bits, sizeof cosine);
}

}  // namespace ckce
