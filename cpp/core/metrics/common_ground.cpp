#include "core/metrics/common_ground.hpp"

#include <algorithm>
#include <optional>

#include "core/base/groups.hpp"
#include "core/base/memory.hpp"
#include "core/binary/line_nodes.hpp"
#include "core/features/block.hpp"
#include "core/linalg/lower_triangle.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {
namespace {

constexpr double kSameNoise = 1e-12;  // of the largest entry

// C_M without eps, S_M and the matrix of the debias term, of the leading features.
struct Model {
  Model(const GroundSums& sums, Index columns)
      : c(whole(sums.xx, columns) / sums.weight),
        s(sums.xr.topRows(columns) / sums.weight),
        diagonal(whole(sums.diagonal, columns) / (sums.weight * sums.weight)) {}

  static Matrix whole(const Matrix& lower, Index size) {
    return lower.topLeftCorner(size, size).selfadjointView<Eigen::Lower>();
  }

  Matrix c;
  Matrix s;
  Matrix diagonal;
};

// |C (C + lambda I)^-1|_F^2 = sum of (mu / (mu + lambda))^2: the effective number of directions.
double directions(const Matrix& c, double lambda, Parallel& parallel) {
  const RidgeSolver solver(c, lambda, parallel);
  Matrix m = c;
  solver.solve(m, parallel);
  return m.squaredNorm();
}

// The value of the model that `own` belongs to, the factors of its influence, and what its noise
// adds to the covariance of both. L_M,d' is transposed: (columns, norm).
double solve_model(const Model& model, const Matrix& own, const Matrix& other,
                   const RidgeSolver& pair, const RidgeSolver& ground, GroundFactors& factors,
                   Matrix& w, Matrix& covariance, Parallel& parallel) {
  w = own.transpose();
  ground.solve(w, parallel);             // W = D L_d               (norm, columns)
  const Matrix f = product(w, model.s);  // F = W S              (norm, width)
  Matrix h = f;
  ground.solve(h);  // D F
  Matrix z = model.s;
  pair.solve(z, parallel);  // P S
  factors.own_h = product(own, h);
  factors.own_f = z + 0.5 * product(own, f);
  factors.other_h = product(other, h);
  factors.other_f = z - 0.5 * product(other, f);
  const Matrix of_rows = product(w, model.diagonal);
  add_product_nt(covariance, 1.0, of_rows, w);  // sum_i |r_i|^2 W x_i x_i'W' / N^2
  return f.squaredNorm() - w.cwiseProduct(of_rows).sum();
}

Ground solve_pair(const GroundSums& sums_a, const GroundSums& sums_b, const Balance& balance,
                  Parallel& parallel) {
  const Index d = balance.norm;
  const double eps = balance.eps;
  const double lambda = balance.regularization;
  Model a(sums_a, balance.columns);
  Model b(sums_b, balance.columns);
  Ground solved;
  const double widest = std::max(directions(a.c.topLeftCorner(d, d), lambda, parallel),
                                 directions(b.c.topLeftCorner(d, d), lambda, parallel));
  a.c.diagonal().array() += eps;
  b.c.diagonal().array() += eps;
  const RidgeSolver pair(a.c + b.c, 0.0, parallel);  // P
  Matrix of_a = 2.0 * b.c.leftCols(d);
  pair.solve(of_a, parallel);  // L_A,d'
  Matrix of_b = 2.0 * a.c.leftCols(d);
  pair.solve(of_b, parallel);  // L_B,d'
  Matrix o = Matrix::Zero(d, d);
  add_product_tn(o, 0.5, of_a, a.c.leftCols(d));
  add_product_tn(o, 0.5, of_b, b.c.leftCols(d));
  o = (0.5 * (o + o.transpose())).eval();
  o.diagonal().array() -= eps;
  const RidgeSolver ground(o, lambda, parallel);  // D
  solved.share = directions(o, lambda, parallel) / widest;
  Matrix covariance = Matrix::Zero(d, d);
  Matrix w_a, w_b;
  solved.value_a = solve_model(a, of_a, of_b, pair, ground, solved.a, w_a, covariance, parallel);
  solved.value_b = solve_model(b, of_b, of_a, pair, ground, solved.b, w_b, covariance, parallel);
  const Vector noisiest = eigenpairs_of(covariance).vectors.col(d - 1);
  solved.a.noisiest = w_a.transpose() * noisiest;
  solved.b.noisiest = w_b.transpose() * noisiest;
  return solved;
}

// |F|^2 - Tr D diagonal D with D = (C + lambda I)^-1 and F = D S, and the factors of its influence.
double solve_alone(const GroundSums& sums, Index norm, double lambda, GroundFactors& factors,
                   Parallel& parallel) {
  const Model model(sums, norm);
  const RidgeSolver own(model.c, lambda, parallel);  // D
  factors.own_f = model.s;
  own.solve(factors.own_f);  // F
  factors.own_h = factors.own_f;
  own.solve(factors.own_h);  // D F
  factors.other_h = factors.other_f = Matrix::Zero(norm, model.s.cols());
  factors.noisiest = Vector::Zero(norm);
  Matrix of_rows = model.diagonal;
  own.solve(of_rows, parallel);
  of_rows.transposeInPlace();
  own.solve(of_rows, parallel);
  return factors.own_f.squaredNorm() - of_rows.trace();
}

// All factors that rows of one model meet, side by side: own_h, own_f of the model, other_h,
// other_f of the other one and the noisiest direction, for each ground. (d, (4 width + 1) grounds)
Matrix side_by_side(const std::vector<Ground>& grounds, GroundFactors Ground::* own,
                    GroundFactors Ground::* other, Index d, Index width) {
  Matrix joined = Matrix::Zero(d, (4 * width + 1) * static_cast<Index>(grounds.size()));
  Index at = 0;
  for (const Ground& ground : grounds) {
    for (const Matrix* part : {&(ground.*own).own_h, &(ground.*own).own_f, &(ground.*other).other_h,
                               &(ground.*other).other_f}) {
      joined.block(0, at, part->rows(), width) = *part;
      at += width;
    }
    joined.col(at++).head((ground.*own).noisiest.size()) = (ground.*own).noisiest;
  }
  return joined;
}

// R F = r [-1, 1] F of two classes. (width,)
Eigen::RowVectorXd sides_of(const LabelKernel& label) {
  return label.apply(Eigen::RowVector2d(-1.0, 1.0));
}

GroundSums sums_from_nodes(const LineSections& sections, const LineNodes& nodes,
                           const Eigen::RowVectorXd& sides, double weight, Parallel& parallel) {
  GroundSums sums(sections.count(), sides.size());
  const Vector squares = sides.squaredNorm() * nodes.wr2;
  parallel.each(count_pieces(nodes.count(), kBlock), [&] {
    return [&, values = LineSections::Values()](Index task) mutable {
      GroundSums part(sections.count(), sides.size());
      nodes.each_panel(task, [&](Index begin, Index rows) {
        sections.fill(nodes.q(begin, rows), values);
        values.add_form(part.xx, nodes.w.segment(begin, rows));
        values.add_form(part.diagonal, squares.segment(begin, rows));
        values.add_product(part.xr, nodes.wr.segment(begin, rows) * sides);
      });
      parallel.in_turn(task, [&] { sums.add(part); });
    };
  });
  sums.weight = weight;
  sums.xx = sections.form_to_phi(sums.xx);
  sums.diagonal = sections.form_to_phi(sums.diagonal);
  sums.xr = sections.to_phi(sums.xr);
  return sums;
}

// Half of what rows add to the influence on a model: <own_h'x_i, r_i - own_f'x_i> - <other_h'x_i,
// other_f'x_i>, from t = x [own_h | own_f | other_h | other_f | noisiest]. (rows,)
Vector influence_of(const In& t, const In& r) {
  const auto part = [&](Index which) { return t.middleCols(which * r.cols(), r.cols()).array(); };
  return (part(0) * (r.array() - part(1)) - part(2) * part(3)).rowwise().sum();
}

// sum_g G_g G_g' with G_g = X_g'diag(w)R_g F: rows of one group depend on each other, so that their
// products are no more without bias than their squares are. O(n d width + groups d^2)
void add_groups(const Features& features, const Samples& samples, const LabelKernel& label,
                GroundSums& sums, Parallel& parallel) {
  const Groups& groups = *samples.groups;
  const std::vector<Index> firsts = groups.batches(kBlock);
  parallel.each(static_cast<Index>(firsts.size()) - 1, [&] {
    return [&](Index task) {
      Matrix part = Matrix::Zero(features.d(), features.d());
      for (Index g = firsts[as_size(task)]; g < firsts[as_size(task) + 1]; ++g) {
        GatheredRows rows(samples, groups.rows(g));
        Matrix x(rows.count(), features.d());
        features.fill_rows(rows.rows, rows.q, x);
        rows.turn_into_residuals();
        Matrix rx = Matrix::Zero(sums.xr.cols(), features.d());  // G_g'
        add_product_tn(rx, 1.0, rows.weights.asDiagonal() * label.apply(rows.q), x);
        add_gram(part, rx);
      }
      parallel.in_turn(task, [&] { add_lower(sums.diagonal, part); });
    };
  });
}

// Functions of p that tell what a row adds, for each ground: to half of the influence if y = 0, if
// y = 1, and u = noisiest'x.
constexpr Index kToldByNodes = 3;
Matrix look_at_nodes(const LineSections& sections, const LineNodes& nodes, const Matrix& for_phi,
                     const Eigen::RowVectorXd& sides, Parallel& parallel) {
  const Index width = sides.size();
  const Index each = 4 * width + 1;
  const Index grounds = for_phi.cols() / each;
  const Matrix factors = sections.from_phi(for_phi);
  Matrix told(nodes.count(), kToldByNodes * grounds);
  parallel.each(count_pieces(nodes.count(), kBlock), [&] {
    return [&, values = LineSections::Values()](Index task) mutable {
      nodes.each_panel(task, [&](Index begin, Index rows) {
        sections.fill(nodes.q(begin, rows), values);
        const Matrix t = values.times(factors);
        for (Index k = 0; k < grounds; ++k) {
          auto mine = told.block(begin, k * kToldByNodes, rows, kToldByNodes);
          for (Index y = 0; y < 2; ++y)
            mine.col(y) = influence_of(t.middleCols(k * each, each),
                                       nodes.residuals(begin, rows, y == 1) * sides);
          mine.col(2) = t.col(k * each + 4 * width);
        }
      });
    };
  });
  return told;
}

// ground_spread of two classes.
std::vector<GroundSpread> spread_from_nodes(const LineSections& sections, const Samples& a,
                                            const LineNodes& nodes_a, const Matrix& for_a,
                                            const Samples& b, const LineNodes& nodes_b,
                                            const Matrix& for_b, const Eigen::RowVectorXd& sides,
                                            std::size_t grounds, Parallel& parallel) {
  const Index n = a.n();
  const Index width = sides.size();
  const LineFunctions of_a(nodes_a, look_at_nodes(sections, nodes_a, for_a, sides, parallel));
  const LineFunctions of_b(nodes_b, look_at_nodes(sections, nodes_b, for_b, sides, parallel));
  std::vector<GroundSpread> spreads(grounds, {Vector(n), Matrix::Zero(2 * width, 2 * width)});
  using Squares = Eigen::Array3d;  // of sum_i w_i (u r)_i (u r)_i: A with A, with B, B with B
  std::vector<Squares> squares(grounds, Squares::Zero());
  parallel.each(count_pieces(n, kLineRows), [&] {
    return [&, block_a = LineBlock(nodes_a), block_b = LineBlock(nodes_b), told_a = Matrix(),
            told_b = Matrix()](Index task) mutable {
      block_a.load(a, task);
      block_b.load(b, task);
      of_a.evaluate(block_a, told_a);
      of_b.evaluate(block_b, told_b);
      std::vector<Squares> part(grounds, Squares::Zero());
      for (Index i = 0; i < told_a.cols(); ++i) {
        const LineRow& row_a = block_a.rows[as_size(i)];
        const LineRow& row_b = block_b.rows[as_size(i)];
        for (std::size_t k = 0; k < grounds; ++k) {
          const Index at = static_cast<Index>(k) * kToldByNodes;
          spreads[k].influence[task * kLineRows + i] =
              2.0 * (told_a(at + row_a.positive, i) - told_b(at + row_b.positive, i));
          const double z_a = told_a(at + 2, i) * row_a.r;
          const double z_b = told_b(at + 2, i) * row_b.r;
          part[k] += row_a.w * Squares(z_a * z_a, z_a * z_b, z_b * z_b);
        }
      }
      parallel.in_turn(task, [&] {
        for (std::size_t k = 0; k < grounds; ++k) squares[k] += part[k];
      });
    };
  });
  const Matrix both = sides.transpose() * sides;
  for (std::size_t k = 0; k < grounds; ++k) {
    spreads[k].noise.topLeftCorner(width, width) = squares[k][0] * both;
    spreads[k].noise.bottomLeftCorner(width, width) = squares[k][1] * both;
    spreads[k].noise.bottomRightCorner(width, width) = squares[k][2] * both;
  }
  return spreads;
}

}  // namespace

void GroundSums::add(const GroundSums& other) {
  weight += other.weight;
  add_lower(xx, other.xx);
  xr += other.xr;
  add_lower(diagonal, other.diagonal);
}

GroundSums ground_sums(const Features& features, const Samples& samples, const LabelKernel& label,
                       Parallel& parallel) {
  const Index d = features.d();
  const Index width = label.kronecker() ? samples.m() : label.factor.cols();
  GroundSums sums(d, width);
  const LineSections sections(features);
  if (auto nodes = LineNodes::of(sections, samples, parallel)) {
    nodes->gather(samples, parallel);
    return sums_from_nodes(sections, *nodes, sides_of(label), total_weight(samples), parallel);
  }
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, block = Block<double>(features), part = GroundSums(d, width)](Index task) mutable {
      block.load(samples, task * kBlock);
      block.turn_into_residuals();
      const Matrix r = label.apply(block.q());
      auto x = block.phi();
      part.weight = block.weights.sum();
      part.xx.setZero();
      part.xr.setZero();
      part.diagonal.setZero();
      add_product_tn(part.xr, 1.0, x, block.weights.asDiagonal() * r);
      if (block.weighted) x.array().colwise() *= block.weights.array().sqrt();
      add_gram(part.xx, x);
      if (!samples.groups) {
        x.array().colwise() *= r.rowwise().norm().array();
        add_gram(part.diagonal, x);
      }
      parallel.in_turn(task, [&] { sums.add(part); });
    };
  });
  if (samples.groups) add_groups(features, samples, label, sums, parallel);
  return sums;
}

std::vector<Ground> common_ground(const GroundSums& sums_a, const GroundSums& sums_b,
                                  const std::vector<Balance>& balances, Parallel& parallel) {
  std::vector<Ground> grounds;
  for (const Balance& balance : balances)
    grounds.push_back(solve_pair(sums_a, sums_b, balance, parallel));
  return grounds;
}

Ground own_ground(const GroundSums& sums_a, const GroundSums& sums_b, Index norm,
                  double regularization, Parallel& parallel) {
  Ground own;
  own.share = 1.0;
  own.value_a = solve_alone(sums_a, norm, regularization, own.a, parallel);
  own.value_b = solve_alone(sums_b, norm, regularization, own.b, parallel);
  return own;
}

std::vector<GroundSpread> ground_spread(const Features& features, const Samples& a,
                                        const Samples& b, const std::vector<Ground>& grounds,
                                        const LabelKernel& label, Parallel& parallel) {
  const Index n = a.n();
  const Index width = grounds.front().a.own_h.cols();
  const Index each = 4 * width + 1;
  const Matrix for_a = side_by_side(grounds, &Ground::a, &Ground::b, features.d(), width);
  const Matrix for_b = side_by_side(grounds, &Ground::b, &Ground::a, features.d(), width);
  const LineSections sections(features);
  const auto nodes_a = LineNodes::of(sections, a, parallel);
  const auto nodes_b = nodes_a ? LineNodes::of(sections, b, parallel) : std::nullopt;
  if (nodes_b)
    return spread_from_nodes(sections, a, *nodes_a, for_a, b, *nodes_b, for_b, sides_of(label),
                             grounds.size(), parallel);
  std::vector<GroundSpread> spreads(grounds.size(),
                                    {Vector::Zero(n), Matrix::Zero(2 * width, 2 * width)});
  std::vector<Matrix> sums;  // of z over the rows of each group
  std::vector<Index> group_of;
  if (a.groups) {
    sums.assign(grounds.size(), Matrix::Zero(a.groups->count(), 2 * width));
    group_of = a.groups->group_of_rows();
  }

  parallel.each(count_pieces(n, kBlock), [&] {
    return [&, block = Block<double>(features), z = Matrix()](Index task) mutable {
      z.resize(std::min(kBlock, n - task * kBlock), 2 * width * static_cast<Index>(grounds.size()));
      // Rows of one model add to the influence on its own value and on the other's.
      const auto look = [&](const Samples& samples, const Matrix& factors, double sign) {
        block.load(samples, task * kBlock);
        block.turn_into_residuals();
        const Matrix r = label.apply(block.q());
        const Matrix t = product(block.phi(), factors);
        for (std::size_t k = 0; k < grounds.size(); ++k) {
          const Index at = static_cast<Index>(k);
          spreads[k].influence.segment(block.begin, block.rows) +=
              2.0 * sign * influence_of(t.middleCols(at * each, each), r);
          z.middleCols((2 * at + (sign > 0.0 ? 0 : 1)) * width, width) =
              r.array().colwise() * t.col(at * each + 4 * width).array();
        }
      };
      look(a, for_a, 1.0);
      look(b, for_b, -1.0);
      if (block.weighted && !a.groups) z.array().colwise() *= block.weights.array().sqrt();
      std::vector<Matrix> noise(grounds.size(), Matrix::Zero(2 * width, 2 * width));
      if (!a.groups)
        for (std::size_t k = 0; k < grounds.size(); ++k)
          add_gram(noise[k], z.middleCols(2 * width * static_cast<Index>(k), 2 * width));
      parallel.in_turn(task, [&] {
        for (std::size_t k = 0; k < grounds.size(); ++k) {
          add_lower(spreads[k].noise, noise[k]);
          if (!a.groups) continue;
          for (Index i = 0; i < block.rows; ++i)
            sums[k].row(group_of[as_size(block.begin + i)]) +=
                block.weights[i] * z.row(i).segment(2 * width * static_cast<Index>(k), 2 * width);
        }
      });
    };
  });
  for (std::size_t k = 0; k < sums.size(); ++k) add_gram(spreads[k].noise, sums[k]);
  return spreads;
}

void GroundSpread::add(const GroundSpread& other) { add_lower(noise, other.noise); }

double GroundSpread::largest(double weight) const {
  const Index width = noise.rows() / 2;
  const Matrix sigma = Model::whole(noise, 2 * width) / (weight * weight);
  const Matrix across = sigma.topRightCorner(width, width);
  const auto differs = [&](const auto& own) { return (across - own).cwiseAbs().maxCoeff(); };
  if (std::max(differs(sigma.topLeftCorner(width, width)),
               differs(sigma.bottomRightCorner(width, width))) <=
      kSameNoise * sigma.cwiseAbs().maxCoeff())
    return 0.0;  // the models are the same, but for the rounding of these sums
  // Sigma = B B': the eigenvalues of Sigma diag(I, -I) are those of B'diag(I, -I) B.
  const Eigenpairs pairs = eigenpairs_of(sigma);
  const Matrix root = pairs.vectors * pairs.values.cwiseMax(0.0).cwiseSqrt().asDiagonal();
  Matrix form = Matrix::Zero(2 * width, 2 * width);
  add_product_tn(form, 1.0, root.topRows(width), root.topRows(width));
  add_product_tn(form, -1.0, root.bottomRows(width), root.bottomRows(width));
  return eigenvalues_of(form).cwiseAbs().maxCoeff();
}

}  // namespace ckce
