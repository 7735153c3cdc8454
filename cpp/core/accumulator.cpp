#include "accumulator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "ece.hpp"
#include "products.hpp"
#include "ridge_solve.hpp"

namespace ckce {
namespace {

Samples rows_of(const Samples& samples, Index begin, Index count) {
  Samples part = samples;
  part.probs.data += begin * part.probs.row_stride;
  part.probs.n = count;
  part.labels += begin;
  if (part.weights) part.weights += begin;
  return part;
}

// The first rows of a column-major matrix, with their labels and weights.
Samples view(const Matrix& probs, Index rows, const std::vector<std::int64_t>& labels,
             const Vector& weights) {
  constexpr auto size = static_cast<Index>(sizeof(double));
  Samples samples;
  samples.probs.data = reinterpret_cast<const char*>(probs.data());
  samples.probs.n = rows;
  samples.probs.m = probs.cols();
  samples.probs.row_stride = size;
  samples.probs.col_stride = size * probs.rows();
  samples.labels = labels.data();
  samples.weights = weights.data();
  return samples;
}

// lower triangle of out += phi'diag(s)phi; s may be negative, so no root of it is taken.
void add_weighted_gram(Matrix& out, const In& phi, const Vector& s) {
  constexpr Index kRows = 256;
  Matrix scaled(kRows, phi.cols());
  for (Index i = 0; i < phi.rows(); i += kRows) {
    const Index rows = std::min(kRows, phi.rows() - i);
    scaled.topRows(rows) = s.segment(i, rows).asDiagonal() * phi.middleRows(i, rows);
    add_lower_product_tn(out, phi.middleRows(i, rows), scaled.topRows(rows));
  }
}

void add_lower(Matrix& out, const Matrix& a) {
  for (Index j = 0; j < a.cols(); ++j) out.col(j).tail(a.rows() - j) += a.col(j).tail(a.rows() - j);
}

// <A, B> of symmetric matrices of which B has only its lower triangle.
double dot_lower(const Matrix& a, const Matrix& b) {
  double sum = 0.0;
  for (Index j = 0; j < b.cols(); ++j) {
    const Index below = b.rows() - j - 1;
    sum += a(j, j) * b(j, j) + 2.0 * a.col(j).tail(below).dot(b.col(j).tail(below));
  }
  return sum;
}

// M^-2, from which Tr(M^-2 B) = sum_i s_i |M^-1 phi_i|^2 for B = Phi'diag(s)Phi. O(d^3)
Matrix inverse_square(const RidgeSolver& solver, Parallel& parallel) {
  Matrix inverse = Matrix::Identity(solver.size(), solver.size());
  solver.solve(inverse, parallel);
  constexpr Index kColumns = 64;
  Matrix square = Matrix::Zero(solver.size(), solver.size());
  parallel.each((solver.size() + kColumns - 1) / kColumns, [&] {
    return [&](Index task) {
      const Index begin = task * kColumns;
      const Index columns = std::min(kColumns, solver.size() - begin);
      add_product(square.middleCols(begin, columns), 1.0, inverse,
                  inverse.middleCols(begin, columns));
    };
  });
  return square;
}

// |CKCE - CKCE under K| for E = K - Phi Phi' >= 0 of which only Tr E <= missing is known: the
// certificate of `solve_features` with s_X = sum_i sqrt(E_ii) |x_i| <= sqrt(Tr E) |X|_F. All norms
// come from sums, M X = S, M H = X, M = Phi'Phi + ridge I: |V|^2 = |R - Phi X|^2 / ridge^2 and
// |U|^2 = |Phi H|^2. `residuals` is |R F|^2, or more. O(d^2 m)
double certificate(const Matrix& s, const Matrix& x, double residuals, double missing, double ridge,
                   double weight, const RidgeSolver& solver, Parallel& parallel) {
  Matrix h = x;
  solver.solve(h, parallel);
  const double value = x.squaredNorm();
  const double u = std::sqrt(std::max(0.0, h.cwiseProduct(x).sum() - ridge * h.squaredNorm()));
  const double v =
      std::sqrt(std::max(0.0, residuals - s.cwiseProduct(x).sum() - ridge * value)) / ridge;
  // sum_i A_ii |r_i|^2 <= residuals / (4 ridge), for A = W K W <= I / (4 ridge).
  const double rounding = 32.0 * std::numeric_limits<double>::epsilon() *
                          (1.0 + 2.0 * weight / ridge) * (value + residuals / (4.0 * ridge));
  return rounding + missing * (2.0 * (1.0 + missing / (missing + ridge)) * u * v + v * v);
}

}  // namespace

Tally::Tally(const Features& features, Index m, bool scattered, bool debias, Index n_bins)
    : moments(features, m), bins(Matrix::Zero(n_bins, 4)) {
  moments.scattered = scattered;
  if (debias) phi_norms_phi = phi_spreads_phi = Matrix::Zero(features.d(), features.d());
  scores.residual = scores.labels = Vector::Zero(m);
}

void Tally::add(const Tally& other) {
  rows += other.rows;
  moments.weight += other.moments.weight;
  moments.diagonal += other.moments.diagonal;
  add_lower(moments.phi_phi, other.moments.phi_phi);
  moments.labels_phi += other.moments.labels_phi;
  add_lower(phi_norms_phi, other.phi_norms_phi);
  add_lower(phi_spreads_phi, other.phi_spreads_phi);
  scores.add(other.scores);
  bins += other.bins;
}

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

}  // namespace

Vector Tally::pack() const {
  Index size = 1;
  each_part(*this, [&](const double*, Index count) { size += count; });
  Vector sums(size);
  sums[0] = static_cast<double>(rows);
  Index at = 1;
  each_part(*this, [&](const double* from, Index count) {
    std::copy_n(from, count, sums.data() + at);
    at += count;
  });
  return sums;
}

void Tally::unpack(const Vector& sums) {
  Index size = 1;
  each_part(*this, [&](const double*, Index count) { size += count; });
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

Accumulator::Accumulator(std::unique_ptr<const Features> features, Index m, LabelKernel label,
                         bool scattered, bool debias, Index n_bins)
    : features_(std::move(features)),
      m_(m),
      label_(std::move(label)),
      scattered_(scattered),
      debias_(debias),
      n_bins_(n_bins),
      tally_(empty()),
      tail_probs_(kBlock, m),
      tail_labels_(static_cast<std::size_t>(kBlock)),
      tail_weights_(kBlock) {}

// Polls for Ctrl-C while another thread's batch is being added.
std::unique_lock<std::mutex> Accumulator::lock(Parallel& parallel) const {
  std::unique_lock<std::mutex> guard(mutex_, std::defer_lock);
  if (!guard.try_lock())
    parallel.each(
        1, [&] { return [&](Index) { parallel.wait_until([&] { return guard.try_lock(); }); }; });
  return guard;
}

// Writes rows behind the tail; they count only once tail_rows_ says so.
void Accumulator::append(const Samples& samples, Index begin, Index count) {
  samples.probs.load(begin, count, tail_probs_.middleRows(tail_rows_, count));
  for (Index i = 0; i < count; ++i) {
    tail_labels_[static_cast<std::size_t>(tail_rows_ + i)] = samples.labels[begin + i];
    tail_weights_[tail_rows_ + i] = samples.weight(begin + i);
  }
}

void Accumulator::add_blocks(const std::vector<Samples>& blocks, Tally& tally,
                             Parallel& parallel) const {
  const Index d = features_->d();
  // Each of the sums is added in the order of the blocks, but none waits for another: so one
  // (d, d) scratch per thread suffices.
  std::array<std::atomic<Index>, 4> turns{};
  const auto in_turn = [&](std::size_t which, Index block, auto commit) {
    parallel.wait_until([&] { return turns[which] == block; });
    commit();
    ++turns[which];
  };
  parallel.each(static_cast<Index>(blocks.size()), [&] {
    return [&, q_block = unset<Matrix>(kBlock + kPadding, m_),
            phi_block = unset<Matrix>(kBlock + kPadding, d), sum = unset<Matrix>(d, d),
            sum_labels = unset<Matrix>(m_, d)](Index block) mutable {
      const Samples& samples = blocks[static_cast<std::size_t>(block)];
      const Index rows = samples.n();
      MatrixRef q = q_block.topRows(rows);
      MatrixRef phi = phi_block.topRows(rows);
      samples.probs.load(0, rows, q);
      features_->fill(0, q, phi);
      Parallel alone;
      const Scores block_scores = scores(samples, alone);
      const ScalarBins bins = ece_scalar(samples, Variant::kTopLabel, Strategy::kUniform, n_bins_,
                                         std::numeric_limits<double>::infinity(), alone);
      const Vector w = weights_of(samples, 0, rows);
      Vector spreads;
      if (debias_) spreads = label_.spreads(q);
      residuals_in_place(samples.labels, q);
      const Vector norms = label_.norms(q);
      const double diagonal = w.dot(phi.rowwise().squaredNorm().cwiseProduct(norms));
      in_turn(0, block, [&] {
        tally.rows += rows;
        tally.moments.weight += block_scores.weight;
        tally.moments.diagonal += diagonal;
        tally.scores.add(block_scores);
        tally.bins.col(0) += bins.weight;
        tally.bins.col(1) += bins.prob;
        tally.bins.col(2) += bins.hits;
        tally.bins.col(3) += bins.count;
      });
      if (debias_) {
        sum.setZero();
        add_weighted_gram(sum, phi, w.cwiseProduct(norms));
        in_turn(1, block, [&] { add_lower(tally.phi_norms_phi, sum); });
        sum.setZero();
        add_weighted_gram(sum, phi, w.cwiseProduct(spreads));
        in_turn(2, block, [&] { add_lower(tally.phi_spreads_phi, sum); });
      }
      const Vector root = w.cwiseSqrt();
      sum.setZero();
      sum_labels.setZero();
      if (samples.weights) phi.array().colwise() *= root.array();
      add_gram(sum, phi);
      if (samples.weights) phi.array().colwise() *= root.array();
      if (scattered_) {
        for (Index f = 0; f < d; ++f)
          for (Index i = 0; i < rows; ++i) sum_labels(samples.labels[i], f) += phi(i, f);
      } else {
        add_product_tn(sum_labels, 1.0, q, phi);
      }
      in_turn(3, block, [&] {
        add_lower(tally.moments.phi_phi, sum);
        tally.moments.labels_phi += sum_labels;
      });
    };
  });
}

// Adds sums, if given, and rows. What can fail works on a copy.
void Accumulator::absorb(const Samples& samples, const Tally* sums, Parallel& parallel) {
  Index begin = 0;
  if (tail_rows_ + samples.n() < kBlock) {
    if (sums) tally_.add(*sums);
  } else {
    std::vector<Samples> blocks;
    if (tail_rows_ > 0) {
      begin = kBlock - tail_rows_;
      append(samples, 0, begin);
      blocks.push_back(view(tail_probs_, kBlock, tail_labels_, tail_weights_));
    }
    for (; samples.n() - begin >= kBlock; begin += kBlock)
      blocks.push_back(rows_of(samples, begin, kBlock));
    Tally next = tally_;
    if (sums) next.add(*sums);
    add_blocks(blocks, next, parallel);
    tally_ = std::move(next);
    tail_rows_ = 0;
  }
  append(samples, begin, samples.n() - begin);
  tail_rows_ += samples.n() - begin;
}

void Accumulator::update(const Samples& samples, Parallel& parallel) {
  const auto guard = lock(parallel);
  absorb(samples, nullptr, parallel);
}

void Accumulator::merge(const AccumulatorState& other, Parallel& parallel) {
  const auto guard = lock(parallel);
  absorb(view(other.tail_probs, other.tail_probs.rows(), other.tail_labels, other.tail_weights),
         &other.tally, parallel);
}

AccumulatorState Accumulator::state(Parallel& parallel) const {
  const auto guard = lock(parallel);
  return {tally_, tail_probs_.topRows(tail_rows_),
          std::vector<std::int64_t>(tail_labels_.begin(), tail_labels_.begin() + tail_rows_),
          tail_weights_.head(tail_rows_)};
}

Tally Accumulator::empty() const { return Tally(*features_, m_, scattered_, debias_, n_bins_); }

Tally Accumulator::settled(Parallel& parallel) const {
  const auto guard = lock(parallel);
  Tally tally = tally_;
  if (tail_rows_ > 0)
    add_blocks({view(tail_probs_, tail_rows_, tail_labels_, tail_weights_)}, tally, parallel);
  return tally;
}

Index Accumulator::rows(Parallel& parallel) const {
  const auto guard = lock(parallel);
  return tally_.rows + tail_rows_;
}

AccumulatorResult Accumulator::solve(std::optional<double> regularization, bool full,
                                     Parallel& parallel) const {
  AccumulatorResult result{settled(parallel)};
  if (result.tally.rows == 0)
    throw std::domain_error("the accumulator holds no rows yet; call update first");
  Moments& moments = result.tally.moments;
  const double weight = moments.weight;
  result.regularization = regularization ? *regularization : std::pow(weight, -0.25);
  const double ridge = result.regularization * weight;
  Matrix x = label_.apply(moments.phi_r());  // S = Phi'diag(w)R F  (d, width)
  result.diagonal = moments.diagonal;
  result.off_diagonal = x.squaredNorm() - moments.diagonal;
  const Scores& sums = result.tally.scores;
  const double trace = features_->trace(weight, sums.sharpness);
  const bool certified = full && std::isfinite(trace);
  double missing = std::max(0.0, trace - moments.phi_phi.diagonal().sum());  // Tr E
  result.missing = std::isfinite(trace) ? missing / trace : 1.0;
  if (certified)
    missing +=
        features_->trace_error(moments.phi_phi, static_cast<double>(result.tally.rows), trace);
  const Matrix s = certified ? x : Matrix();
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  solver.solve(x, parallel);
  result.solution.per_class = x.colwise().squaredNorm().transpose();
  result.solution.value = result.solution.per_class.sum();
  if (!full) return result;
  if (certified) {
    const double residuals = sums.brier * (label_.kronecker() ? 1.0 : label_.factor.squaredNorm());
    result.solution.bound = certificate(s, x, residuals, missing, ridge, weight, solver, parallel);
  }
  if (!debias_) return result;
  const Matrix a = inverse_square(solver, parallel);
  result.solution.debias = dot_lower(a, result.tally.phi_norms_phi);
  result.solution.floor = dot_lower(a, result.tally.phi_spreads_phi);
  return result;
}

}  // namespace ckce
