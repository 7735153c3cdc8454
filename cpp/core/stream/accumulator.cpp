#include "core/stream/accumulator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/linalg/lower_triangle.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"
#include "core/metrics/ckce_parts.hpp"

namespace ckce {
namespace {

// out = phi'diag(s)phi, lower triangle; s may be negative, so no root of it is taken.
void weighted_gram(Matrix& out, const In& phi, const Vector& s) {
  out.setZero();
  Matrix scaled(kScaledRows, phi.cols());
  for (Index i = 0; i < phi.rows(); i += kScaledRows) {
    const Index rows = std::min(kScaledRows, phi.rows() - i);
    scaled.topRows(rows) = s.segment(i, rows).asDiagonal() * phi.middleRows(i, rows);
    add_lower_product_tn(out, phi.middleRows(i, rows), scaled.topRows(rows));
  }
}

// M^-2, from which Tr(M^-2 B) = sum_i s_i |M^-1 phi_i|^2 for B = Phi'diag(s)Phi. O(d^3)
Matrix inverse_square(const RidgeSolver& solver, Parallel& parallel) {
  Matrix inverse = Matrix::Identity(solver.size(), solver.size());
  solver.solve(inverse, parallel);
  Matrix square = Matrix::Zero(solver.size(), solver.size());
  parallel.each_piece(solver.size(), kSolveColumns, [&](Index begin, Index columns) {
    add_product(square.middleCols(begin, columns), 1.0, inverse,
                inverse.middleCols(begin, columns));
  });
  return square;
}

// Kinds of sums, each of which is added in the order of the blocks. None waits for another: so one
// (d, d) scratch per thread suffices.
class Turns {
 public:
  enum Kind { kRowSums, kNorms, kSpreads, kMoments, kCount };

  explicit Turns(Parallel& parallel) : parallel_(parallel) {}

  template <class Commit>
  void take(Kind kind, Index block, Commit commit) {
    parallel_.wait_until([&] { return next_[kind] == block; });
    commit();
    ++next_[kind];
  }

 private:
  Parallel& parallel_;
  std::array<std::atomic<Index>, kCount> next_{};
};

}  // namespace

Accumulator::Accumulator(std::shared_ptr<const Features> features, LabelKernel label,
                         bool scattered, bool debias, Index n_bins, std::optional<Index> predicted)
    : Blocked<Tally>(Tally(*features, scattered, debias, n_bins), features->m()),
      features_(std::move(features)),
      label_(std::move(label)),
      scattered_(scattered),
      debias_(debias),
      n_bins_(n_bins),
      predicted_(predicted) {
  if (features_->rows())
    throw std::invalid_argument("features must be of any rows, got a factor of certain rows");
}

void Accumulator::add_rows(const std::vector<Samples>& pieces, Tally& tally,
                           Parallel& parallel) const {
  const std::vector<Samples> blocks = cut_into_blocks(pieces);
  Turns turns(parallel);
  const Index doubles = 2 * Block<double>::size(*features_) + tally.moments.phi_phi.size() +
                        tally.moments.labels_phi.size();
  parallel.each(static_cast<Index>(blocks.size()), doubles, [&] {
    return [&, block = Block<double>(*features_),
            part = PartialMoments<double>(features_->d(), features_->m())](Index task) mutable {
      const Samples& samples = blocks[as_size(task)];
      block.load(samples, 0);
      const RowSums sums = row_sums(samples, predicted_, n_bins_);
      Vector spreads;
      if (debias_) spreads = label_.spreads(block.q());
      block.turn_into_residuals();
      const Vector norms = label_.norms(block.q());
      const double diagonal = diagonal_of(block, norms);
      turns.take(Turns::kRowSums, task, [&] { tally.add_row_sums(block.rows, diagonal, sums); });
      if (debias_) {
        weighted_gram(part.phi_phi, block.phi(), block.weights.cwiseProduct(norms));
        turns.take(Turns::kNorms, task, [&] { add_lower(tally.phi_norms_phi, part.phi_phi); });
        weighted_gram(part.phi_phi, block.phi(), block.weights.cwiseProduct(spreads));
        turns.take(Turns::kSpreads, task, [&] { add_lower(tally.phi_spreads_phi, part.phi_phi); });
      }
      part.clear();
      part.add(block, scattered_);
      turns.take(Turns::kMoments, task, [&] { tally.moments.add(part); });
    };
  });
}

AccumulatorState Accumulator::unpack(const Vector& sums, const Samples& tail) const {
  Tally tally(*features_, scattered_, debias_, n_bins_);
  tally.unpack(sums);
  return make_state(std::move(tally), tail);
}

// The bound of `ckce_features` where of E = K - Phi Phi' only Tr E <= missing is known: sum_i
// sqrt(w_i E_ii) |x_i| <= sqrt(Tr E) |X|_F. All norms come from sums, M X = S, M H = X, M = Phi'Phi
// + ridge I: |V|^2 = |R - Phi X|^2 / ridge^2 and |U|^2 = |Phi H|^2, with |R F|^2 <= |R|^2 |F|^2.
// These are differences, which rounding moves by about depth u of their terms. O(d^2 m)
double Accumulator::certify(const Matrix& s, const Matrix& x, double ridge,
                            const RidgeSolver& solver, const Tally& tally, double trace,
                            const Missing& missing, Parallel& parallel) const {
  const double residuals =
      tally.scores.brier * (label_.kronecker() ? 1.0 : label_.factor.squaredNorm());
  Matrix h = x;
  solver.solve(h, parallel);
  const double depth = depth_in_blocks(tally.rows);
  const double weight = tally.moments.weight;
  const PrimalError error(x, h, trace, depth, label_, weight, ridge);
  const auto root_of = [](double difference, double rounding) {
    return std::sqrt(std::max(0.0, difference) + rounding);
  };
  const double hx = h.norm() * x.norm();
  const double sx = s.norm() * x.norm();
  const double u = root_of(h.cwiseProduct(x).sum() - ridge * h.squaredNorm(), depth * kUnit * hx);
  const double v = root_of(residuals - s.cwiseProduct(x).sum() - ridge * x.squaredNorm(),
                           depth * kUnit * (residuals + sx)) /
                   ridge;
  const double root = std::sqrt(missing.trace);
  const double bound = error.value + certificate({root * u, u, error.u}, {root * v, v, error.v},
                                                 missing.trace, missing.slack, ridge);
  return finish_bound(bound, x.squaredNorm(), label_, weight, ridge);
}

AccumulatorResult Accumulator::solve(std::optional<double> regularization, bool full,
                                     Parallel& parallel) const {
  Tally tally = settled(parallel);
  if (tally.rows == 0) throw std::domain_error(kNoRows);
  AccumulatorResult result;
  result.rows = tally.rows;
  result.scores = tally.scores;
  result.bins = tally.bins;
  Moments& moments = tally.moments;
  const double weight = moments.weight;
  result.regularization = regularization ? *regularization : std::pow(weight, -0.25);
  const double ridge = result.regularization * weight;
  Matrix x = label_.apply(moments.phi_r());  // S = Phi'diag(w)R F  (d, width)
  result.diagonal = moments.diagonal;
  result.off_diagonal = x.squaredNorm() - moments.diagonal;
  const double trace = features_->trace(weight, tally.scores.sharpness);
  const bool certified = full && std::isfinite(trace);
  const double explained = moments.phi_phi.diagonal().sum();
  Missing missing{std::max(0.0, trace - explained), 0.0};  // Tr E
  result.missing = std::isfinite(trace) ? missing.trace / trace : 1.0;
  if (certified) {
    missing.trace += depth_in_blocks(tally.rows) * kUnit * (trace + explained);
    missing.slack = features_->slack(moments.phi_phi, weight, parallel);
  }
  const Matrix s = certified ? x : Matrix();
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  solver.solve(x, parallel);  // X = M^-1 S
  result.solution.per_class = x.colwise().squaredNorm().transpose();
  result.solution.value = result.solution.per_class.sum();
  if (!full) return result;
  if (certified)
    result.solution.bound = certify(s, x, ridge, solver, tally, explained, missing, parallel);
  if (!debias_) return result;
  const Matrix a = inverse_square(solver, parallel);
  result.solution.debias = dot_lower(a, tally.phi_norms_phi);
  result.solution.floor = dot_lower(a, tally.phi_spreads_phi);
  return result;
}

Matrix Accumulator::witness(std::optional<double> regularization, Parallel& parallel) const {
  Tally tally = settled(parallel);
  if (tally.rows == 0) throw std::domain_error(kNoRows);
  const double weight = tally.moments.weight;
  const double lambda = regularization ? *regularization : std::pow(weight, -0.25);
  Matrix x = tally.moments.phi_r();
  RidgeSolver(std::move(tally.moments.phi_phi), lambda * weight, parallel).solve(x, parallel);
  return x;
}

}  // namespace ckce
