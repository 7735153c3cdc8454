// The streaming state behind `CKCEAccumulator`: CKCE of eq. (9) and JKCE of eq. (11) of the paper
// from sums over samples, beside everything else that one pass over the rows can tell.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/features.hpp"
#include "core/kernels/label_kernel.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce.hpp"
#include "core/stream/blocked.hpp"
#include "core/stream/tally.hpp"

namespace ckce {

using AccumulatorState = BlockedState<Tally>;

// What the sums of all rows tell.
struct AccumulatorResult {
  Index rows = 0;
  Scores scores;
  Matrix bins;  // as in Tally
  double regularization = 0.0;
  Solution solution;          // value, per_class; debias and floor if the state has their sums,
                              // bound for features with Phi Phi' <= K
  double missing = 1.0;       // share of Tr K that such features leave out
  double off_diagonal = 0.0;  // of JKCE, see JkceSums
  double diagonal = 0.0;
  // sum_i w_i psi_i^2 of the influences, and sum_i w_i rows_i^2 of JkceSums, for standard errors;
  // NaN where only the rows know them.
  double influence_square = std::numeric_limits<double>::quiet_NaN();
  double rows_square = std::numeric_limits<double>::quiet_NaN();
};

class Accumulator : public Blocked<Tally> {
 public:
  // An update costs O(n d^2), with debias three times that. `predicted`: see row_sums.
  Accumulator(std::shared_ptr<const Features> features, LabelKernel label, bool scattered,
              bool debias, Index n_bins, std::optional<Index> predicted);

  // lambda = N^-1/4 unless given; `full` adds debias term and floor, if their sums exist. O(d^3)
  AccumulatorResult solve(std::optional<double> regularization, bool full,
                          Parallel& parallel) const;
  // X = (Phi'Phi + ridge I)^-1 Phi'R of the witness F(q) = phi(q) X. (d, m)   O(d^3)
  Matrix witness(std::optional<double> regularization, Parallel& parallel) const;
  // A state like this one's, of sums that `Tally::pack` gave and rows.
  AccumulatorState unpack(const Vector& sums, const Samples& tail) const;
  const Features& features() const { return *features_; }

 private:
  void add_rows(const std::vector<Samples>& pieces, Tally& tally,
                Parallel& parallel) const override;
  struct Missing {  // of E = K - Phi Phi'
    double trace;
    double slack;
  };
  double certify(const Matrix& s, const Matrix& x, double ridge, const RidgeSolver& solver,
                 const Tally& tally, double trace, const Missing& missing,
                 Parallel& parallel) const;

  std::shared_ptr<const Features> features_;
  LabelKernel label_;
  bool scattered_;
  bool debias_;
  Index n_bins_;
  std::optional<Index> predicted_;
};

}  // namespace ckce
