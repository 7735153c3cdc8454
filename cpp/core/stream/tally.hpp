// Everything that one pass over the rows can tell: sums over samples, so merging is addition.
#pragma once

#include "core/features/features.hpp"
#include "core/metrics/scores.hpp"
#include "core/stream/moments.hpp"
#include "core/stream/row_sums.hpp"

namespace ckce {

struct Tally {
  // `scattered` is fixed by the caller, not by Moments: files must mean the same in every version.
  Tally(const Features& features, bool scattered, bool debias, Index n_bins);
  void add(const Tally& other);
  // All but the matrices of a block of rows.
  void add_row_sums(Index n_rows, double diagonal, const RowSums& sums);

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
  Matrix bins;  // of RowSums
};

}  // namespace ckce
