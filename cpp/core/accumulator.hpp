// The streaming state behind `CKCEAccumulator`: everything that one pass over the rows can tell.
//
// All of it is sums over samples, so merging is addition. Rows wait in a tail until a block is
// full: blocks are then the same for any split of the rows, and so are the bits.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "features/features.hpp"
#include "moments.hpp"
#include "parallel.hpp"
#include "residuals.hpp"
#include "scores.hpp"
#include "types.hpp"

namespace ckce {

// Sums over rows.
struct Tally {
  // `scattered` is fixed by the caller, not by Moments: files must mean the same in every version.
  Tally(const Features& features, Index m, bool scattered, bool debias, Index n_bins);
  void add(const Tally& other);

  // All sums as one vector: rows, weight, diagonal, hits, confidence, brier, log_loss, sharpness,
  // residual (m), labels (m), bins (B, 4), labels_phi (m, d), then the lower triangles of phi_phi
  // and, with debias, of phi_norms_phi and phi_spreads_phi; matrices column by column.
  Vector pack() const;
  void unpack(const Vector& sums);

  Index rows = 0;
  Moments moments;
  // For the diagonal of A (lower triangles, (d, d), or empty): Phi'diag(w s)Phi with s_i = r_i L
  // r_i' for the debias term, and with its mean over labels drawn from q_i for the floor.
  Matrix phi_norms_phi;
  Matrix phi_spreads_phi;
  Scores scores;
  Matrix
      bins;  // (B, 4): weight, sum w confidence, sum w [right], rows of uniform bins of confidence
};

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
  Accumulator(std::unique_ptr<const Features> features, Index m, LabelKernel label, bool scattered,
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
  Tally empty() const;  // of the same shapes

 private:
  std::unique_lock<std::mutex> lock(Parallel& parallel) const;
  void absorb(const Samples& samples, const Tally* sums, Parallel& parallel);
  void append(const Samples& samples, Index begin, Index count);
  void add_blocks(const std::vector<Samples>& blocks, Tally& tally, Parallel& parallel) const;

  std::unique_ptr<const Features> features_;
  Index m_;
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
