#include "core/metrics/miscalibration.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/binary/line_nodes.hpp"
#include "core/features/block.hpp"
#include "core/linalg/lower_triangle.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

constexpr double kNullDeviation = 0.4;  // null_sd <= 0.4 N^(-3/4)
constexpr double kUnitsPerDf = 8.0;     // rows, or groups, for each degree of freedom, at least
constexpr double kLeastLambda = 1e-8;   // of the largest eigenvalue
constexpr double kLeastShape = 1e-4;    // of a shape's square, that the smoother leaves to it
constexpr double kLeastChange = 1e-6;   // of a prediction by a shape, in root mean square

// Sums over the rows, all with weights.
struct Sums {
  Sums(Index d, Index m)
      : zz(Matrix::Zero(d, d)),
        tt(Matrix::Zero(d, d)),
        zx(Matrix::Zero(d, kShapes * m)),
        zr(Matrix::Zero(d, m)),
        xx(Matrix::Zero(kShapes, kShapes)),
        xr(Vector::Zero(kShapes)) {}

  Matrix zz;  // Phi'Phi, lower triangle
  Matrix tt;  // Phi'diag(t)Phi, t_i = |Cov(e_Y | q_i)|^2 if calibrated, lower triangle
  Matrix zx;  // Phi'X
  Matrix zr;  // Phi'R
  Matrix xx;  // <X_k, X_l>
  Vector xr;  // <X_l, R>
  double weight = 0.0;

  void clear() {
    weight = 0.0;
    for (Matrix* each : {&zz, &tt, &zx, &zr, &xx}) each->setZero();
    xr.setZero();
  }
  void add(const Sums& other) {
    weight += other.weight;
    add_lower(zz, other.zz);
    add_lower(tt, other.tt);
    zx += other.zx;
    zr += other.zr;
    xx += other.xx;
    xr += other.xr;
  }
};

// <A_k, B_l> of matrices side by side, m columns each
Matrix inner_products(const Matrix& a, const Matrix& b, Index m) {
  Matrix out(a.cols() / m, b.cols() / m);
  for (Index k = 0; k < out.rows(); ++k)
    for (Index l = 0; l < out.cols(); ++l)
      out(k, l) = a.middleCols(k * m, m).cwiseProduct(b.middleCols(l * m, m)).sum();
  return out;
}

// |diag(q) - qq'|^2 for each row
Vector null_squares(const In& q) {
  const Vector q2 = q.rowwise().squaredNorm();
  const Vector q3 = q.array().cube().rowwise().sum();
  return (q2 - 2.0 * q3 + q2.cwiseAbs2()).cwiseMax(0.0);
}

Sums sum_up(const Features& features, const Samples& samples, Parallel& parallel) {
  const Index d = features.d();
  const Index m = samples.m();
  Sums sums(d, m);
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, block = Block<double>(features, std::min(kBlock, samples.n())),
            part = Sums(d, m)](Index task) mutable {
      block.load(samples, task * kBlock);
      const Matrix x = shapes(block.q());
      const Vector t = null_squares(block.q());
      block.turn_into_residuals();
      auto phi = block.phi();
      const auto w = block.weights.asDiagonal();
      part.clear();
      part.weight = block.weights.sum();
      const Matrix wx = w * x;
      const Matrix wr = w * block.q();
      for (Index k = 0; k < kShapes; ++k) {
        const auto mine = x.middleCols(k * m, m);
        part.xr[k] = mine.cwiseProduct(wr).sum();
        for (Index l = 0; l < kShapes; ++l)
          part.xx(k, l) = mine.cwiseProduct(wx.middleCols(l * m, m)).sum();
      }
      add_product_tn(part.zx, 1.0, phi, wx);
      add_product_tn(part.zr, 1.0, phi, wr);
      if (block.weighted) phi.array().colwise() *= block.weights.array().sqrt();
      add_gram(part.zz, phi);
      phi.array().colwise() *= t.array().sqrt();
      add_gram(part.tt, phi);
      parallel.in_turn(task, [&] { sums.add(part); });
    };
  });
  return sums;
}

// The same from nodes: R = r [-1, 1].
Sums sum_up(const LineSections& sections, const LineNodes& nodes, double weight,
            Parallel& parallel) {
  constexpr Index m = 2;
  const Eigen::RowVector2d sides(-1.0, 1.0);
  Sums sums(sections.count(), m);
  parallel.each(count_pieces(nodes.count(), kBlock), [&] {
    return
        [&, part = Sums(sections.count(), m), values = LineSections::Values()](Index task) mutable {
          part.clear();
          nodes.each_panel(task, [&](Index begin, Index rows) {
            const Matrix q = nodes.q(begin, rows);
            const Matrix x = shapes(q);
            const Vector w = nodes.w.segment(begin, rows);
            const Matrix wx = w.asDiagonal() * x;
            const Matrix wr = nodes.wr.segment(begin, rows) * sides;
            sections.fill(q, values);
            part.xx += inner_products(x, wx, m);
            part.xr += inner_products(x, wr, m);
            values.add_product(part.zx, wx);
            values.add_product(part.zr, wr);
            values.add_form(part.zz, w);
            values.add_form(part.tt, w.cwiseProduct(null_squares(q)));
          });
          parallel.in_turn(task, [&] { sums.add(part); });
        };
  });
  sums.weight = weight;
  for (Matrix* form : {&sums.zz, &sums.tt}) *form = sections.form_to_phi(*form);
  for (Matrix* rows : {&sums.zx, &sums.zr}) *rows = sections.to_phi(*rows);
  return sums;
}

// Z = Phi V: eigenvectors and eigenvalues of Phi'Phi / N, and c_k = sum_i t_i z_ik^2.
struct Spectrum {
  explicit Spectrum(const Sums& sums) : weight(sums.weight) {
    Eigenpairs pairs = eigenpairs_of(sums.zz / weight);
    s = pairs.values.cwiseMax(0.0);
    vectors = std::move(pairs.vectors);
    const Matrix whole = sums.tt.selfadjointView<Eigen::Lower>();
    c = vectors.cwiseProduct(product(whole, vectors)).colwise().sum().transpose();
  }

  Vector twice(double lambda) const {
    return ((s.array() + 2.0 * lambda) / (weight * (s.array() + lambda).square())).matrix();
  }
  double df(double lambda) const { return weight * s.dot(twice(lambda)); }
  // 2/N^2 sum_ij A1_ij^2 Tr S_i S_j <= 2/N^2 sum_i t_i (A1^2)_ii, S_i the covariance of e_Y
  double null_sd(double lambda) const {
    const Vector squares = twice(lambda).cwiseAbs2();
    return std::sqrt(2.0 * std::max(squares.cwiseProduct(s).dot(c), 0.0) / weight);
  }

  double weight;
  Matrix vectors;
  Vector s;
  Vector c;
};

// The smallest lambda with null_sd <= 0.4 N^(-3/4) and df <= units / 8; both fall with lambda.
double choose_lambda(const Spectrum& spectrum, double units) {
  const double largest = spectrum.s.maxCoeff();
  const double most = kNullDeviation * std::pow(spectrum.weight, -0.75);
  const auto allowed = [&](double log_lambda) {
    const double lambda = std::exp(log_lambda);
    return spectrum.null_sd(lambda) <= most && spectrum.df(lambda) <= units / kUnitsPerDf;
  };
  double low = std::log(kLeastLambda * largest);
  double high = std::log(1e6 * largest);
  if (allowed(low)) return std::exp(low);
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    (allowed(middle) ? high : low) = middle;
  }
  return std::exp(high);
}

// (X'(I - A1)X)^-1 without the directions of which the smoother leaves next to nothing, and without
// shapes that are nothing but rounding, as all are where every prediction is 1/m.
Matrix invert_shapes(const Matrix& left, const Vector& squares, double weight) {
  const double least = kLeastChange * kLeastChange * weight;
  const Vector scale = squares.unaryExpr(
      [least](double square) { return square > least ? 1.0 / std::sqrt(square) : 0.0; });
  const Matrix scaled = scale.asDiagonal() * (0.5 * (left + left.transpose())) * scale.asDiagonal();
  const Eigenpairs pairs = eigenpairs_of(scaled);
  const Vector inverse =
      pairs.values.unaryExpr([](double value) { return value > kLeastShape ? 1.0 / value : 0.0; });
  const Matrix vectors = scale.asDiagonal() * pairs.vectors;
  Matrix inverted = Matrix::Zero(left.rows(), left.cols());
  add_product_nt(inverted, 1.0, vectors * inverse.asDiagonal(), vectors);
  return inverted;
}

// Sums of one group while its rows come by: Z_g'R_g, Z_g'1, V_g'R_g and N_g, z by `root`.
struct GroupSums {
  GroupSums(Index d, Index m)
      : zr(Matrix::Zero(d, m)), z(Vector::Zero(d)), v(Vector::Zero(kShapes)) {}

  void clear() {
    zr.setZero();
    z.setZero();
    v.setZero();
    weight = 0.0;
  }

  Matrix zr;
  Vector z;
  Vector v;
  double weight = 0.0;
};

// visit(group, sums) for each of the groups first .. last - 1
template <class Visit>
void visit_groups(const Features& features, const Samples& samples, const Smoother& smoother,
                  Index first, Index last, Visit visit) {
  const Groups& groups = *samples.groups;
  GroupSums sums(features.d(), samples.m());
  Index group = first;
  for (Index at = groups.begin(first); at < groups.begin(last); at += kBlock) {
    const Index count = std::min(kBlock, groups.begin(last) - at);
    GatheredRows rows(samples, groups.rows(at, count));
    Matrix phi(count, features.d());
    features.fill_rows(rows.rows, rows.q, phi);
    Matrix x = shapes(rows.q);
    rows.turn_into_residuals();
    const Matrix v = shape_scores(x, phi, smoother.spread, rows.q);
    const Matrix z = product(phi, smoother.root);
    for (Index row = 0; row < count;) {
      const Index size = std::min(count - row, groups.begin(group + 1) - (at + row));
      const auto w = rows.weights.segment(row, size);
      add_product_tn(sums.zr, 1.0, z.middleRows(row, size),
                     w.asDiagonal() * rows.q.middleRows(row, size));
      sums.z += z.middleRows(row, size).transpose() * w;
      sums.v += v.middleRows(row, size).transpose() * w;
      sums.weight += w.sum();
      row += size;
      if (at + row < groups.begin(group + 1)) continue;
      visit(group++, sums);
      sums.clear();
    }
  }
}

// What the value loses with the blocks of its groups, R_g'A_gg R_g, as the `share` of one copy of
// each row; and df, which is then sum_g 1'A1_gg 1.
void drop_groups(const Features& features, const Samples& samples, Smoother& smoother,
                 Vector& share, Parallel& parallel) {
  const std::vector<Index> firsts = samples.groups->batches(kBlock);
  double df = 0.0;
  parallel.each(static_cast<Index>(firsts.size()) - 1, [&] {
    return [&](Index task) {
      double df_of_task = 0.0;
      visit_groups(features, samples, smoother, firsts[as_size(task)], firsts[as_size(task) + 1],
                   [&](Index group, const GroupSums& sums) {
                     const double form =
                         sums.zr.squaredNorm() + sums.v.dot(smoother.inverse * sums.v);
                     df_of_task += sums.z.squaredNorm();
                     for (const Index row : samples.groups->rows(group))
                       share[row] = form / sums.weight;
                   });
      parallel.in_turn(task, [&] { df += df_of_task; });
    };
  });
  smoother.df = df;
}

// What the pass over the rows multiplies features by, with F = (s + lambda)^-1 Z'(R - Xc) / N and
// Hf = (s + lambda)^-1 F in the coordinates of phi.
struct Fit {
  Matrix f, hf;  // (d, m)
  Vector c;
  double lambda;
};

// e: what F leaves of R - Xc.
Matrix left_by(const Fit& fit, const In& phi, const Matrix& x, const In& r) {
  Matrix e = r - fitted_shapes(x, fit.c);
  add_product(e, -1.0, phi, fit.f);
  return e;
}

// |r_i|^2 - |e_i|^2 + 2 lambda <phi_i Hf, e_i> - 2 share_i: the influence but for its mean.
Vector influence_of(const Fit& fit, const In& phi, const In& r, const Matrix& e,
                    const Vector& share) {
  return r.rowwise().squaredNorm() - e.rowwise().squaredNorm() - 2.0 * share +
         2.0 * fit.lambda * product(phi, fit.hf).cwiseProduct(e).rowwise().sum();
}

// r_i'A_ii r_i; x becomes V.
Vector own_share(const In& phi, Matrix& x, const In& r, const Smoother& smoother) {
  const Matrix v = shape_scores(x, phi, smoother.spread, r);
  const Vector a = product(phi, smoother.root).rowwise().squaredNorm();
  return a.cwiseProduct(r.rowwise().squaredNorm()) +
         product(v, smoother.inverse).cwiseProduct(v).rowwise().sum();
}

// Fills the influence but for its mean. Of independent rows the share is r_i'A_ii r_i, found here;
// returns the sum of these.
double look_again(const Features& features, const Samples& samples, const Smoother& smoother,
                  const Fit& fit, Vector& share, Vector& influence, Parallel& parallel) {
  double total = 0.0;
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, block = Block<double>(features, std::min(kBlock, samples.n()))](Index task) mutable {
      block.load(samples, task * kBlock);
      Matrix x = shapes(block.q());
      block.turn_into_residuals();
      const Matrix e = left_by(fit, block.phi(), x, block.q());
      auto mine = share.segment(block.begin, block.rows);
      if (!samples.groups) mine = own_share(block.phi(), x, block.q(), smoother);
      influence.segment(block.begin, block.rows) =
          influence_of(fit, block.phi(), block.q(), e, mine);
      const double sum = mine.dot(block.weights);
      parallel.in_turn(task, [&] { total += sum; });
    };
  });
  return total;
}

// The same from nodes: the influence is a function of p for each label, and r_i'A_ii r_i = r^2
// s(p).
double look_again(const LineSections& sections, const LineNodes& nodes, const Samples& samples,
                  const Smoother& smoother, const Fit& fit, Vector& influence, Parallel& parallel) {
  const Eigen::RowVector2d sides(-1.0, 1.0);
  const Matrix f = sections.from_phi(fit.f), hf = sections.from_phi(fit.hf);
  const Matrix root = sections.from_phi(smoother.root), spread = sections.from_phi(smoother.spread);
  Matrix of_label(nodes.count(), 2);
  Vector share(nodes.count());
  parallel.each(count_pieces(nodes.count(), kBlock), [&] {
    return [&, values = LineSections::Values(), near = Smoother()](Index task) mutable {
      near.inverse = smoother.inverse;
      nodes.each_panel(task, [&](Index begin, Index rows) {
        const Matrix q = nodes.q(begin, rows);
        Matrix x = shapes(q);
        sections.fill(q, values);
        const Fit fit_near{values.rows_of(f), values.rows_of(hf), fit.c, fit.lambda};
        near.root = values.rows_of(root);
        near.spread = values.rows_of(spread);
        Matrix r[2], e[2];
        for (int y : {0, 1}) {
          r[y] = nodes.residuals(begin, rows, y == 1) * sides;
          e[y] = left_by(fit_near, values.s, x, r[y]);
        }
        const Vector mine = own_share(values.s, x, Vector::Ones(rows) * sides, near);
        share.segment(begin, rows) = mine;
        for (int y : {0, 1})
          of_label.col(y).segment(begin, rows) = influence_of(
              fit_near, values.s, r[y], e[y], mine.cwiseProduct(r[y].col(1).cwiseAbs2()));
      });
    };
  });
  const LineFunctions functions(nodes, of_label);
  parallel.each(count_pieces(samples.n(), kLineRows), [&] {
    return [&, block = LineBlock(nodes), values = Matrix()](Index task) mutable {
      block.load(samples, task);
      functions.evaluate(block, values);
      for (Index i = 0; i < values.cols(); ++i)
        influence[task * kLineRows + i] = values(block.rows[as_size(i)].positive ? 1 : 0, i);
    };
  });
  return share.dot(nodes.wr2);
}

}  // namespace

Miscalibration miscalibration(const Features& features, const Samples& samples,
                              Parallel& parallel) {
  const Index m = samples.m();
  parallel.span(0.0, 0.4);
  const LineSections sections(features);
  std::optional<LineNodes> nodes = LineNodes::of(sections, samples, parallel);
  if (nodes) nodes->gather(samples, parallel);
  const Sums sums = nodes ? sum_up(sections, *nodes, total_weight(samples), parallel)
                          : sum_up(features, samples, parallel);
  const Spectrum spectrum(sums);
  Miscalibration found;
  Smoother& smoother = found.smoother;
  smoother.weight = sums.weight;
  const double units = samples.groups ? static_cast<double>(samples.groups->count()) : sums.weight;
  const double lambda = choose_lambda(spectrum, units);
  smoother.regularization = lambda;
  smoother.df = spectrum.df(lambda);
  const Vector twice = spectrum.twice(lambda);
  smoother.root = spectrum.vectors * twice.cwiseSqrt().asDiagonal();

  Matrix root_x = Matrix::Zero(features.d(), kShapes * m);  // diag(twice)^(1/2) Z'X
  add_product_tn(root_x, 1.0, smoother.root, sums.zx);
  smoother.spread = product(smoother.root, root_x);
  smoother.inverse =
      invert_shapes(sums.xx - inner_products(root_x, root_x, m), sums.xx.diagonal(), sums.weight);
  Matrix root_r = Matrix::Zero(features.d(), m);
  add_product_tn(root_r, 1.0, smoother.root, sums.zr);
  const Vector scores = sums.xr - inner_products(root_x, root_r, m);  // V'R
  found.fit = smoother.inverse * scores;
  const Matrix rest = sums.zr - fitted_shapes(sums.zx, found.fit);  // Phi'(R - Xc)
  Matrix z_rest = Matrix::Zero(features.d(), m);
  add_product_tn(z_rest, 1.0, spectrum.vectors, rest);
  found.coefficients = product(spectrum.vectors, twice.asDiagonal() * z_rest);

  const auto shrink = (spectrum.s.array() + lambda).inverse().matrix();
  const Matrix f = shrink.asDiagonal() * z_rest / sums.weight;  // in the coordinates of Z
  const Fit fit{product(spectrum.vectors, f), product(spectrum.vectors, shrink.asDiagonal() * f),
                found.fit, lambda};
  Vector share = Vector::Zero(samples.n());
  found.influence.resize(samples.n());
  parallel.span(0.4, 0.7);
  if (samples.groups) drop_groups(features, samples, smoother, share, parallel);
  parallel.span(samples.groups ? 0.7 : 0.4, 1.0);
  const double dropped =
      nodes ? look_again(sections, *nodes, samples, smoother, fit, found.influence, parallel)
            : look_again(features, samples, smoother, fit, share, found.influence, parallel);
  const double scale = 1.0 / (1.0 - smoother.df / sums.weight);
  smoother.null_sd = scale * spectrum.null_sd(lambda);
  found.value = scale * (root_r.squaredNorm() + scores.dot(found.fit) - dropped) / sums.weight;
  const Vector w = weights_of(samples, 0, samples.n());
  const double mean = found.influence.dot(w) / sums.weight;
  found.influence = (scale * (found.influence.array() - mean)).matrix();
  return found;
}

}  // namespace ckce
