#include "core/stream/tally.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/linalg/lower_triangle.hpp"

namespace ckce {
namespace {

// Calls part(data, count) for the pieces of a tally in the order of `pack`.
template <class AnyTally, class Part>
void each_part(AnyTally& tally, Part part) {
  auto& scores = tally.scores;
  for (auto* number : {&tally.moments.weight, &tally.moments.diagonal, &scores.hits,
                       &scores.confidence, &scores.brier, &scores.log_loss, &scores.sharpness})
    part(number, 1);
  part(scores.residual.data(), scores.residual.size());
  part(scores.labels.data(), scores.labels.size());
  part(tally.bins.data(), tally.bins.size());
  part(tally.moments.labels_phi.data(), tally.moments.labels_phi.size());
  for (auto* lower : {&tally.moments.phi_phi, &tally.phi_norms_phi, &tally.phi_spreads_phi})
    for (Index j = 0; j < lower->cols(); ++j) part(lower->col(j).data() + j, lower->rows() - j);
}

Index packed_size(const Tally& tally) {
  Index size = 1;
  each_part(tally, [&](const double*, Index count) { size += count; });
  return size;
}

}  // namespace

Tally::Tally(const Features& features, bool scattered, bool debias, Index n_bins)
    : moments(features, scattered), bins(Matrix::Zero(n_bins, 4)) {
  if (debias) phi_norms_phi = phi_spreads_phi = Matrix::Zero(features.d(), features.d());
  scores.residual = scores.labels = Vector::Zero(features.m());
}

void Tally::add(const Tally& other) {
  rows += other.rows;
  moments.add(other.moments);
  add_lower(phi_norms_phi, other.phi_norms_phi);
  add_lower(phi_spreads_phi, other.phi_spreads_phi);
  scores.add(other.scores);
  bins += other.bins;
}

void Tally::add_row_sums(Index n_rows, double diagonal, const RowSums& sums) {
  rows += n_rows;
  moments.weight += sums.scores.weight;
  moments.diagonal += diagonal;
  scores.add(sums.scores);
  bins += sums.bins;
}

Vector Tally::pack() const {
  Vector sums(packed_size(*this));
  sums[0] = static_cast<double>(rows);
  Index at = 1;
  each_part(*this, [&](const double* from, Index count) {
    std::copy_n(from, count, sums.data() + at);
    at += count;
  });
  return sums;
}

void Tally::unpack(const Vector& sums) {
  const Index size = packed_size(*this);
  if (sums.size() != size)
    throw std::invalid_argument("sums must have " + std::to_string(size) + " entries, got " +
                                std::to_string(sums.size()));
  rows = static_cast<Index>(sums[0]);
  Index at = 1;
  each_part(*this, [&](double* to, Index count) {
    std::copy_n(sums.data() + at, count, to);
    at += count;
  });
  scores.weight = moments.weight;
}

}  // namespace ckce
