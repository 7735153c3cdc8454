// The streaming state behind `CKCEAccumulator`: CKCE of eq. (9) and JKCE of eq. (11) of the paper
// from sums over samples, beside everything else that one pass over the rows can tell.
//
// Rows wait in a tail until a block is full: blocks are then the same for any split of the rows,
// and so are the bits.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce.hpp"
#include "core/stream/tally.hpp"

namespace ckce {

// A state at rest: sums over whole blocks, and the rows after them.
struct AccumulatorState {
  Tally tally;
  Matrix tail_probs;  // (rows, m)
  std::vector<std::int64_t> tail_labels;
  Vector tail_weights;
};

struct AccumulatorResult {
  Tally tally;  // with the tail; its matrices may have been moved from
  double regularization = 0.0;
  Solution solution;          // value, per_class; debias and floor if the state has their sums,
                              // bound for features with Phi Phi' <= K
  double missing = 1.0;       // share of Tr K that such features leave out
  double off_diagonal = 0.0;  // of JKCE, see JkceSums
  double diagonal = 0.0;
};

// Safe to use from several threads at a time. A call that throws leaves the state as it was.
class Accumulator {
 public:
  Accumulator(std::shared_ptr<const Features> features, LabelKernel label, bool scattered,
              bool debias, Index n_bins);

  // O(n d^2), with debias three times that
  void update(const Samples& samples, Parallel& parallel);
  void merge(const AccumulatorState& other, Parallel& parallel);
  AccumulatorState state(Parallel& parallel) const;
  // lambda = N^-1/4 unless given; `full` adds debias term and floor, if their sums exist. O(d^3)
  AccumulatorResult solve(std::optional<double> regularization, bool full,
                          Parallel& parallel) const;
  Index rows(Parallel& parallel) const;
  // Sums of all rows, the tail's too.
  Tally settled(Parallel& parallel) const;
  // A state like this one's, of sums that `Tally::pack` gave and rows.
  AccumulatorState unpack(const Vector& sums, const Samples& tail) const;
  const Features& features() const { return *features_; }

 private:
  std::unique_lock<std::mutex> lock(Parallel& parallel) const;
  void absorb(const Samples& samples, const Tally* sums, Parallel& parallel);
  void append(const Samples& samples, Index begin, Index count);
  void add_blocks(const std::vector<Samples>& blocks, Tally& tally, Parallel& parallel) const;
  double certify(const Matrix& s, const Matrix& x, double ridge, const RidgeSolver& solver,
                 const AccumulatorResult& result, double missing, Parallel& parallel) const;
  Tally empty() const;  // of the same shapes

  std::shared_ptr<const Features> features_;
  LabelKernel label_;
  bool scattered_;
  bool debias_;
  Index n_bins_;

  mutable std::mutex mutex_;  // of all below
  Tally tally_;
  Index tail_rows_ = 0;
  Matrix tail_probs_;  // (kBlock, m)
  std::vector<std::int64_t> tail_labels_;
  Vector tail_weights_;
};

}  // namespace ckce
