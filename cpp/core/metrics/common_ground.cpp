#include "core/metrics/common_ground.hpp"

#include <algorithm>

#include "core/base/groups.hpp"
#include "core/base/memory.hpp"
#include "core/features/block.hpp"
#include "core/linalg/lower_triangle.hpp"
#include "core/linalg/products.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {
namespace {

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

// What the rows of one model are multiplied by: psi_i^A = 2 [<own_h'x_i^A, r_i - own_f'x_i^A> +
// <other_h'x_i^B, other_f'x_i^B>] without its mean, and the same for B.
struct Factors {
  Matrix own_h, own_f;      // for rows of the model itself     (columns, width)
  Matrix other_h, other_f;  // for rows of the other model
};

// The value of the model that `own` belongs to, and the factors of its influence. L_M,d' is
// transposed: (columns, norm).
double solve_model(const Model& model, const Matrix& own, const Matrix& other,
                   const RidgeSolver& pair, const RidgeSolver& ground, Factors& factors,
                   Parallel& parallel) {
  Matrix w = own.transpose();
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
  return f.squaredNorm() - w.cwiseProduct(product(w, model.diagonal)).sum();
}

struct Solved {
  Ground ground;
  Factors a;
  Factors b;
};

Solved solve_pair(const GroundSums& sums_a, const GroundSums& sums_b, const Balance& balance,
                  Parallel& parallel) {
  const Index d = balance.norm;
  const double eps = balance.eps;
  const double lambda = balance.regularization;
  Model a(sums_a, balance.columns);
  Model b(sums_b, balance.columns);
  Solved solved;
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
  solved.ground.share = directions(o, lambda, parallel) / widest;
  solved.ground.value_a = solve_model(a, of_a, of_b, pair, ground, solved.a, parallel);
  solved.ground.value_b = solve_model(b, of_b, of_a, pair, ground, solved.b, parallel);
  return solved;
}

// All factors that rows of one model meet, side by side: own_h, own_f of the model and other_h,
// other_f of the other one, for each balance. (d, 4 width balances)
Matrix side_by_side(const std::vector<Solved>& all, Factors Solved::* own, Factors Solved::* other,
                    Index d, Index width) {
  Matrix joined = Matrix::Zero(d, 4 * width * static_cast<Index>(all.size()));
  Index at = 0;
  for (const Solved& solved : all)
    for (const Matrix* part : {&(solved.*own).own_h, &(solved.*own).own_f, &(solved.*other).other_h,
                               &(solved.*other).other_f}) {
      joined.block(0, at, part->rows(), width) = *part;
      at += width;
    }
  return joined;
}

// From t_i to psi_i = 2 (t_i - mean t)
void centre(Vector& t, const Samples& samples) {
  const double mean = t.dot(weights_of(samples, 0, samples.n())) / total_weight(samples);
  t = (2.0 * (t.array() - mean)).matrix();
}

// The pass over the rows: fills the influences.
void look_again(const Features& features, const Samples& a, const Samples& b,
                const LabelKernel& label, Index width, std::vector<Solved>& all,
                Parallel& parallel) {
  const Index d = features.d();
  const Index n = a.n();
  for (Solved& solved : all)
    solved.ground.influence_a = solved.ground.influence_b = Vector::Zero(n);
  const Matrix for_a = side_by_side(all, &Solved::a, &Solved::b, d, width);
  const Matrix for_b = side_by_side(all, &Solved::b, &Solved::a, d, width);

  parallel.each(count_pieces(n, kBlock), [&] {
    return [&, block = Block<double>(features)](Index task) mutable {
      // Rows of one model add to the influence on its own value and on the other's.
      const auto look = [&](const Samples& samples, const Matrix& factors, Vector Ground::* own,
                            Vector Ground::* other) {
        block.load(samples, task * kBlock);
        block.turn_into_residuals();
        const Matrix r = label.apply(block.q());
        const Matrix t = product(block.phi(), factors);
        for (std::size_t k = 0; k < all.size(); ++k) {
          const auto part = [&](Index which) {
            return t.middleCols((4 * static_cast<Index>(k) + which) * width, width).array();
          };
          (all[k].ground.*own).segment(block.begin, block.rows).array() +=
              (part(0) * (r.array() - part(1))).rowwise().sum();
          (all[k].ground.*other).segment(block.begin, block.rows).array() +=
              (part(2) * part(3)).rowwise().sum();
        }
      };
      look(a, for_a, &Ground::influence_a, &Ground::influence_b);
      look(b, for_b, &Ground::influence_b, &Ground::influence_a);
    };
  });
  for (Solved& solved : all) {
    centre(solved.ground.influence_a, a);
    centre(solved.ground.influence_b, b);
  }
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

std::vector<Ground> common_ground(const Features& features, const Samples& a, const Samples& b,
                                  const GroundSums& sums_a, const GroundSums& sums_b,
                                  const LabelKernel& label, const std::vector<Balance>& balances,
                                  bool full, Parallel& parallel) {
  std::vector<Solved> all;
  for (const Balance& balance : balances)
    all.push_back(solve_pair(sums_a, sums_b, balance, parallel));
  if (full) look_again(features, a, b, label, sums_a.xr.cols(), all, parallel);
  std::vector<Ground> grounds;
  for (Solved& solved : all) grounds.push_back(std::move(solved.ground));
  return grounds;
}

}  // namespace ckce
