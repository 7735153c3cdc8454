#include "types.hpp"

#include <algorithm>

namespace ckce {
namespace {

// memcpy: the caller's strides need not be multiples of the element size.
template <class T>
double read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value));
}

constexpr Index kGroup = 8;  // rows: a cache line of each output column at a time

// kRows rows of all columns; a count known to the compiler is worth a factor of two.
template <class T, Index kRows>
void load_group(const char* rows, const Probs& probs, double* out, Index out_stride) {
  const Index row_stride = probs.row_stride;
  const Index col_stride = probs.col_stride;
  for (Index j = 0; j < probs.m; ++j, rows += col_stride, out += out_stride)
    for (Index i = 0; i < kRows; ++i) out[i] = read<T>(rows + i * row_stride);
}

template <class T>
void load_as(const Probs& probs, Index begin, Index rows, MatrixRef out) {
  const char* from = probs.data + begin * probs.row_stride;
  Index i = 0;
  for (; i + kGroup <= rows; i += kGroup)
    load_group<T, kGroup>(from + i * probs.row_stride, probs, out.data() + i, out.outerStride());
  for (; i < rows; ++i)
    load_group<T, 1>(from + i * probs.row_stride, probs, out.data() + i, out.outerStride());
}

}  // namespace

void Probs::load(Index begin, Index rows, MatrixRef out) const {
  switch (dtype) {
    case Dtype::kFloat16:
      return load_as<Eigen::half>(*this, begin, rows, out);
    case Dtype::kFloat32:
      return load_as<float>(*this, begin, rows, out);
    case Dtype::kFloat64:
      return load_as<double>(*this, begin, rows, out);
  }
}

}  // namespace ckce
