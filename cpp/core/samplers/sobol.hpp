// A digitally shifted Sobol' sequence: uniforms that fill the cube evenly (Sobol' 1967).
//
// Dimension 1 is van der Corput's sequence; each further dimension takes the next primitive
// polynomial over GF(2), in the order of their bits, and odd initial numbers from SplitMix64(0).
#pragma once

#include <vector>

#include "core/base/random.hpp"
#include "core/base/types.hpp"

namespace ckce {

namespace sobol {

constexpr int kBits = 53;

// x^power modulo a polynomial over GF(2); bit i is the coefficient of x^i.
inline std::uint64_t power_of_x(std::uint64_t power, std::uint64_t polynomial, int degree) {
  const auto multiply = [&](std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    for (; b; b >>= 1) {
      if (b & 1) product ^= a;
      a <<= 1;
      if (a >> degree & 1) a ^= polynomial;
    }
    return product;
  };
  std::uint64_t result = 1;
  std::uint64_t base = degree == 1 ? (2 ^ polynomial) : 2;
  for (; power; power >>= 1) {
    if (power & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

// True if x generates the 2^degree - 1 nonzero residues.
inline bool is_primitive(std::uint64_t polynomial, int degree) {
  const std::uint64_t order = (std::uint64_t{1} << degree) - 1;
  if (power_of_x(order, polynomial, degree) != 1) return false;
  std::uint64_t rest = order;
  for (std::uint64_t prime = 2; rest > 1; ++prime) {
    if (prime * prime > rest) prime = rest;
    if (rest % prime) continue;
    while (rest % prime == 0) rest /= prime;
    if (prime < order && power_of_x(order / prime, polynomial, degree) == 1) return false;
  }
  return true;
}

}  // namespace sobol

// Uniforms in (0, 1), (count, dimension)
inline Matrix sobol_uniforms(Index count, Index dimension, SplitMix64& shift) {
  using sobol::kBits;
  Matrix u(count, dimension);
  SplitMix64 initial(0);
  std::uint64_t polynomial = 1;
  int degree = 0;
  for (Index j = 0; j < dimension; ++j) {
    std::uint64_t direction[kBits];
    if (j == 0) {
      for (int k = 0; k < kBits; ++k) direction[k] = std::uint64_t{1} << (kBits - 1 - k);
    } else {
      do {
        polynomial += 2;
        while (polynomial >> (degree + 1)) ++degree;
      } while (!sobol::is_primitive(polynomial, degree));
      for (int k = 0; k < kBits; ++k) {
        if (k < degree) {
          const std::uint64_t odd = (initial.bits() >> (63 - k)) | 1;  // below 2^(k + 1)
          direction[k] = odd << (kBits - 1 - k);
        } else {
          direction[k] = direction[k - degree] ^ (direction[k - degree] >> degree);
          for (int l = 1; l < degree; ++l)
            if (polynomial >> (degree - l) & 1) direction[k] ^= direction[k - l];
        }
      }
    }
    std::uint64_t point = shift.bits() >> (64 - kBits);
    for (Index i = 0; i < count; ++i) {  // in the order of the Gray code
      u(i, j) = SplitMix64::unit_interval(point);
      int bit = 0;
      while (i >> bit & 1) ++bit;
      point ^= direction[bit];
    }
  }
  return u;
}

}  // namespace ckce
