#include "core/metrics/correction.hpp"

#include <vector>

#include "core/base/random.hpp"
#include "core/features/block.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// The least 1 - A1_ii that a correction without its own label is divided by. Where a row stands
// apart, the weights of the others have a norm of sqrt(A1_ii (1 - A1_ii)) and no meaning: divided
// by 1 - A1_ii they made corrections of hundreds.
constexpr double kLeastOthers = 0.5;

// Residuals below are roundings. Their squares speak for rows that are fitted exactly, all alike: a
// ratio of roundings is no number of degrees of freedom.
constexpr double kLeastResidual = 1e-7;

// +-1 for each draw; the same for all rows of a group.
void draw_signs(std::uint64_t seed, Index unit, Eigen::Ref<Vector> signs) {
  SplitMix64 stream(SplitMix64(seed ^ SplitMix64(static_cast<std::uint64_t>(unit)).bits()).bits());
  std::uint64_t bits = 0;
  for (Index b = 0; b < signs.size(); ++b) {
    if (b % 64 == 0) bits = stream.bits();
    signs[b] = (bits >> (b % 64)) & 1U ? 1.0 : -1.0;
  }
}

std::vector<Index> units_of(const Samples& samples) {
  std::vector<Index> units(as_size(samples.n()));
  for (Index i = 0; i < samples.n(); ++i) units[as_size(i)] = i;
  if (samples.groups)
    for (Index g = 0; g < samples.groups->count(); ++g)
      for (const Index row : samples.groups->rows(g)) units[as_size(row)] = g;
  return units;
}

}  // namespace

Matrix correction(const Features& features, const Probs& probs, const Matrix& coefficients,
                  const Vector& fit, Parallel& parallel) {
  Matrix out(probs.n, probs.m);
  parallel.each_piece(probs.n, kBlock, [&](Index begin, Index rows) {
    Matrix q(rows, probs.m);
    probs.load(begin, rows, q);
    Matrix phi(rows, features.d());
    features.fill(begin, q, phi);
    Matrix sum = product(phi, coefficients);
    if (fit.size() > 0) sum += fitted_shapes(shapes(q), fit);
    out.middleRows(begin, rows) = sum;
  });
  return out;
}

Matrix own_correction(const Features& features, const Samples& samples, const Miscalibration& found,
                      Parallel& parallel) {
  Matrix out(samples.n(), samples.m());
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, block = Block<double>(features, std::min(kBlock, samples.n()))](Index task) mutable {
      block.load(samples, task * kBlock);
      Matrix x = shapes(block.q());
      Matrix f = fitted_shapes(x, found.fit);
      block.turn_into_residuals();
      add_product(f, 1.0, block.phi(), found.coefficients);
      const Matrix v = shape_scores(x, block.phi(), found.smoother.spread, block.q());
      const Matrix gv = product(v, found.smoother.inverse);  // A_ii r_i = a_i r_i + V_i G v_i
      Vector a = product(block.phi(), found.smoother.root).rowwise().squaredNorm();
      const Vector copies = block.weights.cwiseMin(1.0);  // a copy of the row, or all of it
      a = a.cwiseProduct(copies);
      for (Index l = 0; l < kShapes; ++l)
        f -= gv.col(l).cwiseProduct(copies).asDiagonal() *
             x.middleCols(l * samples.m(), samples.m());
      f -= a.asDiagonal() * block.q();
      out.middleRows(block.begin, block.rows) =
          (1.0 - a.array()).max(kLeastOthers).inverse().matrix().asDiagonal() * f;
    };
  });
  return out;
}

CorrectionErrors correction_errors(const Features& features, const Samples& samples,
                                   const Miscalibration& found, const Probs& at, Index first,
                                   Index classes, Index draws, std::uint64_t seed,
                                   Parallel& parallel) {
  const Index m = samples.m();
  const Smoother& smoother = found.smoother;
  Matrix q(at.n, m);
  at.load(0, at.n, q);
  Matrix phi(at.n, features.d());
  features.fill(0, q, phi);
  const Matrix z_at = product(phi, smoother.root);
  Matrix v_at = shapes(q);  // V at the predictions that are asked for
  add_product(v_at, -1.0, phi, smoother.spread);
  const std::vector<Index> units = units_of(samples);

  CorrectionErrors result{Matrix::Zero(at.n * classes, draws), Matrix::Zero(at.n, m),
                          Matrix::Zero(at.n, m), Matrix::Zero(at.n, m)};
  // A1 = Z_at Z': the sums over the rows are Z'diag(e_j)signs where that is fewer numbers.
  const bool narrow = z_at.cols() < at.n;
  const Index height = narrow ? z_at.cols() : at.n;
  Matrix sums = narrow ? Matrix(Matrix::Zero(height * classes, draws)) : Matrix();
  Matrix& errors = narrow ? sums : result.draws;
  Matrix scores = Matrix::Zero(kShapes, draws);
  Vector scores_again = Vector::Zero(kShapes);
  Matrix squares = Matrix::Zero(at.n, m), fourths = squares;
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, block = Block<double>(features, std::min(kBlock, samples.n()))](Index task) mutable {
      block.load(samples, task * kBlock);
      Matrix x = shapes(block.q());
      const Matrix spreads =
          block.weights.asDiagonal() * (block.q() - block.q().cwiseAbs2()).cwiseMax(0.0);
      Matrix fitted = fitted_shapes(x, found.fit);
      add_product(fitted, 1.0, block.phi(), found.coefficients);
      block.turn_into_residuals();
      Matrix e = block.q() - fitted;
      fitted = block.weights.asDiagonal() * fitted;
      const Matrix z = product(block.phi(), smoother.root);
      // What a row leaves without its own label; a copy of weight w varies by sqrt(w).
      const Vector scale =
          (samples.groups ? block.weights : Vector(block.weights.cwiseSqrt())).array() /
          (1.0 - block.weights.cwiseMin(1.0).array() * z.rowwise().squaredNorm().array());
      e = scale.asDiagonal() * e;
      const Matrix v = shape_scores(x, block.phi(), smoother.spread, e);
      Matrix signs(draws, block.rows);
      for (Index i = 0; i < block.rows; ++i)
        draw_signs(seed, units[as_size(block.begin + i)], signs.col(i));
      const Matrix signs_by_row = signs.transpose();
      Matrix near = Matrix::Zero(at.n, block.rows);  // A1 between those asked for and these rows
      add_product_nt(near, 1.0, z_at, z);
      const Matrix again = product(near, fitted);
      const Matrix left = narrow ? Matrix(z.transpose()) : near;
      Matrix part(height, draws);
      Matrix of_block(height * classes, draws);
      for (Index j = 0; j < classes; ++j) {
        part.setZero();
        add_product(part, 1.0, left * e.col(first + j).asDiagonal(), signs_by_row);
        of_block.middleRows(j * height, height) = part;
      }
      const Matrix score_part = product_tn(v, signs_by_row);
      const Vector score_again = scores_of(x, fitted).colwise().sum().transpose();
      near = near.cwiseAbs2().eval();
      const Vector least = kLeastResidual * kLeastResidual * block.weights;
      e = (e.array().square().colwise() + least.array()).matrix();
      const Matrix variance = product(near, spreads), square = product(near, e);
      near = near.cwiseAbs2().eval();
      const Matrix fourth =
          product(near, block.weights.cwiseMax(1e-300).cwiseInverse().asDiagonal() * e.cwiseAbs2());
      parallel.in_turn(task, [&] {
        errors += of_block;
        result.variance += variance;
        result.again += again;
        squares += square;
        fourths += fourth;
        scores += score_part;
        scores_again += score_again;
      });
    };
  });
  const Matrix fits = product(smoother.inverse, scores);
  for (Index j = 0; j < classes; ++j) {
    auto of_class = result.draws.middleRows(j * at.n, at.n);
    if (narrow) of_class = product(z_at, sums.middleRows(j * height, height));
    for (Index l = 0; l < kShapes; ++l) of_class += v_at.col(l * m + first + j) * fits.row(l);
  }
  result.again += fitted_shapes(v_at, smoother.inverse * scores_again);
  result.freedom = 2.0 * squares.array().square() / fourths.array().max(1e-300);
  return result;
}

}  // namespace ckce
