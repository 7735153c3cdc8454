#include "core/base/samples.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/memory.hpp"
#include "core/base/sizes.hpp"

namespace ckce {
namespace {

// memcpy: the caller's strides need not be multiples of the element size.
template <class T>
double read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value));
}

// kRows rows of all columns; a count known to the compiler is worth a factor of two.
template <class T, Index kRows, class Scalar>
void load_group(const char* rows, const Probs& probs, Scalar* out, Index out_stride) {
  const Index row_stride = probs.row_stride;
  const Index col_stride = probs.col_stride;
  for (Index j = 0; j < probs.m; ++j, rows += col_stride, out += out_stride)
    for (Index i = 0; i < kRows; ++i) out[i] = static_cast<Scalar>(read<T>(rows + i * row_stride));
}

template <class Scalar>
using Packet = typename Eigen::internal::packet_traits<Scalar>::type;
template <class Scalar>
constexpr Index kPacket = Eigen::internal::packet_traits<Scalar>::size;

template <class T, class Scalar>
Packet<Scalar> load_packet(const char* at) {
  alignas(64) Scalar widened[kPacket<Scalar>];
  for (Index i = 0; i < kPacket<Scalar>; ++i)
    widened[i] = static_cast<Scalar>(read<T>(at + i * static_cast<Index>(sizeof(T))));
  return Eigen::internal::pload<Packet<Scalar>>(widened);
}

#if defined(__GNUC__)  // of a packet as a template argument, which is harmless
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

// kPacket rows whose entries are neighbours, by square transpositions in registers; the last square
// overlaps the one before, if it must. Twice as fast as entry by entry.
template <class T, class Scalar>
void load_squares(const char* rows, const Probs& probs, Scalar* out, Index out_stride) {
  constexpr Index kSide = kPacket<Scalar>;
  for (Index square = 0; square < probs.m; square += kSide) {
    const Index j = std::min(square, probs.m - kSide);
    Eigen::internal::PacketBlock<Packet<Scalar>, kSide> block;
    for (Index i = 0; i < kSide; ++i)
      block.packet[i] =
          load_packet<T, Scalar>(rows + i * probs.row_stride + j * static_cast<Index>(sizeof(T)));
    Eigen::internal::ptranspose(block);
    for (Index c = 0; c < kSide; ++c)
      Eigen::internal::pstoreu(out + (j + c) * out_stride, block.packet[c]);
  }
}

template <class T, class Out>
void load_as(const Probs& probs, Index begin, Index rows, Out& out) {
  using Scalar = typename Out::Scalar;
  constexpr Index kSide = kPacket<Scalar>;
  const char* from = probs.data + begin * probs.row_stride;
  const Index stride = out.outerStride();
  Index i = 0;
  if constexpr (kSide > 1 && sizeof(T) > 2) {
    const auto size = static_cast<Index>(sizeof(T));
    if (probs.col_stride == size && probs.m >= kSide)
      for (; i + kSide <= rows; i += kSide) {
        if (probs.row_stride == probs.m * size)
          fetch_ahead(from + i * probs.row_stride, kSide * probs.row_stride);
        load_squares<T>(from + i * probs.row_stride, probs, out.data() + i, stride);
      }
  }
  for (; i + kLoadRows <= rows; i += kLoadRows)
    load_group<T, kLoadRows>(from + i * probs.row_stride, probs, out.data() + i, stride);
  for (; i < rows; ++i)
    load_group<T, 1>(from + i * probs.row_stride, probs, out.data() + i, stride);
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

Samples Samples::part(Index begin, Index count) const {
  Samples part = *this;
  part.probs.data += begin * part.probs.row_stride;
  part.probs.n = count;
  part.labels += begin;
  if (part.weights) part.weights += begin;
  part.groups = nullptr;
  return part;
}

}  // namespace ckce
