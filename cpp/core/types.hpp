// The shapes everything else is written in.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ckce {

using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using MatrixRef = Eigen::Ref<Matrix>;
using FloatMatrix = Eigen::MatrixXf;
using FloatMatrixRef = Eigen::Ref<FloatMatrix>;

constexpr Index kPanel = 128;    // rows of a panel: a (kPanel, kPanel) tile of K stays in L2
constexpr Index kBlock = 1024;   // rows whose features exist at one time; fixed, so bits are too
constexpr Index kPadding = 136;  // rows between the columns of a block, else they share cache sets

// Rows that a loop over columns keeps in registers: two of this instruction set. Lanes never mix,
// so their number does not change bits.
constexpr int kLanes = 2 * Eigen::internal::packet_traits<double>::size;
using Lanes = Eigen::Array<double, kLanes, 1>;
static_assert(kPanel % kLanes == 0, "a panel is whole lanes");

// A probability that was checked before: another thread may have written into the caller's array
// since, and no index and no order may hang on what it wrote.
inline double still_probability(double p) { return p >= 0.0 && p <= 2.0 ? p : 0.0; }

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

// Asks for what will be read soon, so that memory is busy while the rows at hand are used.
inline void fetch_ahead(const char* at, Index bytes) {
#if defined(__GNUC__)
  constexpr Index kAhead = 4096;
  for (Index line = 0; line < bytes; line += 64) __builtin_prefetch(at + kAhead + line);
#else
  static_cast<void>(at);
  static_cast<void>(bytes);
#endif
}

// Asks for large pages for what is about to be written: a page fault each 4 kB costs more than the
// writing.
void expect_use(void* data, std::size_t bytes);

// A matrix that is about to be written.
template <class AnyMatrix>
AnyMatrix unset(Index rows, Index cols) {
  AnyMatrix matrix(rows, cols);
  expect_use(matrix.data(), sizeof(*matrix.data()) * static_cast<std::size_t>(matrix.size()));
  return matrix;
}

// The calibration set {(y_i, q_i)}, validated, with optional frequency weights.
struct Samples {
  Probs probs;
  const std::int64_t* labels = nullptr;  // (n,), 0-based
  const double* weights = nullptr;       // (n,), positive; null means ones

  Index n() const { return probs.n; }
  Index m() const { return probs.m; }
  double weight(Index i) const { return weights ? weights[i] : 1.0; }
};

// An (n, width) matrix cut into panels of kPanel rows, each contiguous and column-major; the rows
// that pad the last panel are zero. Panels of any two such matrices meet in small dense products.
class Panels {
 public:
  Panels() = default;
  Panels(Index n, Index width) : Panels(n, width, Unset()) { data_.setZero(); }
  struct Unset {};  // for memory that is about to be written
  Panels(Index n, Index width, Unset)
      : n_(n), width_(width), data_(unset<Matrix>(kPanel, count(n) * width)) {}

  static Index count(Index n) { return (n + kPanel - 1) / kPanel; }
  Index n() const { return n_; }
  Index width() const { return width_; }
  Index count() const { return count(n_); }
  auto panel(Index i) { return data_.middleCols(i * width_, width_); }
  auto panel(Index i) const { return data_.middleCols(i * width_, width_); }
  auto row(Index i) { return panel(i / kPanel).row(i % kPanel); }
  auto row(Index i) const { return panel(i / kPanel).row(i % kPanel); }
  Matrix& data() { return data_; }
  const Matrix& data() const { return data_; }
  void zero_padding() {
    if (n_ > 0) panel(count() - 1).bottomRows(count() * kPanel - n_).setZero();
  }

 private:
  Index n_ = 0;
  Index width_ = 0;
  Matrix data_;
};

// What an estimator returns. `full` estimators fill everything, the others only `value`.
struct Solution {
  double value = 0.0;
  double bound = 0.0;   // |value - exact| <= bound
  double debias = 0.0;  // sum_i A_ii |r_i|^2, the diagonal of the trace formula
  double floor = 0.0;   // sum_i A_ii E|r_i|^2, the mean of the value under calibration
  Vector influence;     // (n,), psi_i
  Vector per_class;     // (m,), contributions that add up to the value
  Index iterations = 0;
  Index rank = 0;
  Index debias_rank = 0;      // of the factor that debias and floor come from, if not exact
  double debias_error = 0.0;  // about the most that they can be off then
};

}  // namespace ckce
