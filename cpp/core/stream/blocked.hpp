// Sums over rows in blocks that do not depend on how the rows came: rows wait in a tail until a
// block is full, so blocks are the same for any split of the rows, and so are the bits.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/base/sizes.hpp"

namespace ckce {

constexpr const char* kNoRows = "the accumulator holds no rows yet; call update first";

// A state at rest: sums over whole blocks, and the rows after them.
template <class Sums>
struct BlockedState {
  Sums sums;
  Matrix tail_probs;  // (rows, m)
  std::vector<std::int64_t> tail_labels;
  Vector tail_weights;

  // The first `rows` rows of the tail
  Samples tail(Index rows) const {
    constexpr auto size = static_cast<Index>(sizeof(double));
    Samples samples;
    samples.probs.data = reinterpret_cast<const char*>(tail_probs.data());
    samples.probs.n = rows;
    samples.probs.m = tail_probs.cols();
    samples.probs.row_stride = size;
    samples.probs.col_stride = size * tail_probs.rows();
    samples.labels = tail_labels.data();
    samples.weights = tail_weights.data();
    return samples;
  }
};

// Safe to use from several threads at a time. A call that throws leaves the state as it was.
template <class Sums>
class Blocked {
 public:
  using State = BlockedState<Sums>;
  virtual ~Blocked() = default;

  void update(const Samples& samples, Parallel& parallel) {
    const auto guard = lock(parallel);
    absorb(samples, nullptr, parallel);
  }

  void merge(const State& other, Parallel& parallel) {
    const auto guard = lock(parallel);
    absorb(other.tail(other.tail_probs.rows()), &other.sums, parallel);
  }

  State state(Parallel& parallel) const {
    const auto guard = lock(parallel);
    return {state_.sums, state_.tail_probs.topRows(tail_rows_),
            std::vector<std::int64_t>(state_.tail_labels.begin(),
                                      state_.tail_labels.begin() + tail_rows_),
            state_.tail_weights.head(tail_rows_)};
  }

  // Sums of all rows, the tail's too.
  Sums settled(Parallel& parallel) const {
    const auto guard = lock(parallel);
    Sums sums = state_.sums;
    if (tail_rows_ > 0) add_rows({state_.tail(tail_rows_)}, sums, parallel);
    return sums;
  }

  Index rows(Parallel& parallel) const {
    const auto guard = lock(parallel);
    return state_.sums.rows + tail_rows_;
  }

  // see(sums) without the tail.
  template <class See>
  double look(See see, Parallel& parallel) const {
    const auto guard = lock(parallel);
    return see(state_.sums);
  }

  // A state of sums and rows, of the same shapes as this one's.
  static State make_state(Sums sums, const Samples& tail) {
    State state{std::move(sums), Matrix(tail.n(), tail.m()),
                std::vector<std::int64_t>(tail.labels, tail.labels + tail.n()),
                weights_of(tail, 0, tail.n())};
    tail.probs.load(0, tail.n(), state.tail_probs);
    return state;
  }

 protected:
  Blocked(Sums empty, Index m)
      : state_{std::move(empty), Matrix(kBlock, m), std::vector<std::int64_t>(as_size(kBlock)),
               Vector(kBlock)} {}

  // Adds pieces of rows, each of which is whole blocks (or the tail at last), in their order.
  virtual void add_rows(const std::vector<Samples>& pieces, Sums& sums,
                        Parallel& parallel) const = 0;

 private:
  // Polls for Ctrl-C while another thread's batch is being added.
  std::unique_lock<std::mutex> lock(Parallel& parallel) const {
    std::unique_lock<std::mutex> guard(mutex_, std::defer_lock);
    if (!guard.try_lock())
      parallel.each(
          1, [&] { return [&](Index) { parallel.wait_until([&] { return guard.try_lock(); }); }; });
    return guard;
  }

  // Writes rows behind the tail; they count only once tail_rows_ says so.
  void append(const Samples& samples, Index begin, Index count) {
    samples.probs.load(begin, count, state_.tail_probs.middleRows(tail_rows_, count));
    for (Index i = 0; i < count; ++i) {
      state_.tail_labels[as_size(tail_rows_ + i)] = samples.labels[begin + i];
      state_.tail_weights[tail_rows_ + i] = samples.weight(begin + i);
    }
  }

  // Adds sums, if given, and rows. What can fail works on a copy.
  void absorb(const Samples& samples, const Sums* sums, Parallel& parallel) {
    Index begin = 0;
    if (tail_rows_ + samples.n() < kBlock) {
      if (sums) state_.sums.add(*sums);
    } else {
      std::vector<Samples> pieces;
      if (tail_rows_ > 0) {
        begin = kBlock - tail_rows_;
        append(samples, 0, begin);
        pieces.push_back(state_.tail(kBlock));
      }
      const Index whole = (samples.n() - begin) / kBlock * kBlock;
      if (whole > 0) pieces.push_back(samples.part(begin, whole));
      begin += whole;
      Sums next = state_.sums;
      if (sums) next.add(*sums);
      add_rows(pieces, next, parallel);
      state_.sums = std::move(next);
      tail_rows_ = 0;
    }
    append(samples, begin, samples.n() - begin);
    tail_rows_ += samples.n() - begin;
  }

  mutable std::mutex mutex_;  // of all below
  State state_;               // its tail has room for a block
  Index tail_rows_ = 0;
};

// Pieces of rows cut into blocks.
inline std::vector<Samples> cut_into_blocks(const std::vector<Samples>& pieces) {
  std::vector<Samples> blocks;
  for (const Samples& piece : pieces)
    for (Index begin = 0; begin < piece.n(); begin += kBlock)
      blocks.push_back(piece.part(begin, std::min(kBlock, piece.n() - begin)));
  return blocks;
}

}  // namespace ckce
