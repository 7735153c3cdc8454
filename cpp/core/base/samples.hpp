// The calibration set {(y_i, q_i)}: views on the caller's memory.
#pragma once

#include <cstdint>

#include "core/base/types.hpp"

namespace ckce {

enum class Dtype { kFloat16, kFloat32, kFloat64 };

// A view on the (n, m) predictions in the caller's memory, any layout. Read through `load` only:
// what it returns is aligned and column-major, so results do not depend on the layout.
struct Probs {
  const char* data = nullptr;
  Dtype dtype = Dtype::kFloat64;
  Index n = 0;
  Index m = 0;
  Index row_stride = 0;  // in bytes
  Index col_stride = 0;

  // out(i, j) = q_{begin + i, j}
  void load(Index begin, Index rows, MatrixRef out) const;
  void load(Index begin, Index rows, FloatMatrixRef out) const;  // rounded to float32
};

class Groups;  // groups.hpp

// Validated, with optional frequency weights and groups of rows that depend on each other.
struct Samples {
  Probs probs;
  const std::int64_t* labels = nullptr;  // (n,), 0-based
  const double* weights = nullptr;       // (n,), positive; null means ones
  const Groups* groups = nullptr;        // null means independent rows

  Index n() const { return probs.n; }
  Index m() const { return probs.m; }
  double weight(Index i) const { return weights ? weights[i] : 1.0; }
  // `count` of them from `begin` on, without their groups
  Samples part(Index begin, Index count) const;
};

// A probability that was checked before: another thread may have written into the caller's array
// since, and no index and no order may depend on what it wrote.
inline double still_probability(double p) { return p >= 0.0 && p <= 2.0 ? p : 0.0; }

// w_i of `rows` samples from `begin` on
inline Vector weights_of(const Samples& samples, Index begin, Index rows) {
  if (!samples.weights) return Vector::Ones(rows);
  return Eigen::Map<const Vector>(samples.weights + begin, rows);
}

// N = sum_i w_i
inline double total_weight(const Samples& samples) {
  return samples.weights ? weights_of(samples, 0, samples.n()).sum()
                         : static_cast<double>(samples.n());
}

}  // namespace ckce
