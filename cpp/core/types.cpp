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

template <class T, class Out>
void load_as(const Probs& probs, Index begin, Index rows, Out& out) {
  constexpr Index kRows = 8;  // a cache line of each output column at a time
  for (Index first = 0; first < rows; first += kRows) {
    const Index last = std::min(first + kRows, rows);
    for (Index j = 0; j < probs.m; ++j) {
      const char* column = probs.data + j * probs.col_stride;
      for (Index i = first; i < last; ++i)
        out(i, j) =
            static_cast<typename Out::Scalar>(read<T>(column + (begin + i) * probs.row_stride));
    }
  }
}

template <class Out>
void load_any(const Probs& probs, Index begin, Index rows, Out& out) {
  switch (probs.dtype) {
    case Dtype::kFloat16:
      return load_as<Eigen::half>(probs, begin, rows, out);
    case Dtype::kFloat32:
      return load_as<float>(probs, begin, rows, out);
    case Dtype::kFloat64:
      return load_as<double>(probs, begin, rows, out);
  }
}

}  // namespace

void Probs::load(Index begin, Index rows, MatrixRef out) const {
  load_any(*this, begin, rows, out);
}

void Probs::load(Index begin, Index rows, FloatMatrixRef out) const {
  load_any(*this, begin, rows, out);
}

}  // namespace ckce
