#include "core/binary/ckce_binary.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/rounding.hpp"
#include "core/binary/cell_rows.hpp"
#include "core/binary/groups_binary.hpp"
#include "core/metrics/ckce_parts.hpp"

namespace ckce {
namespace {

double solve_price(double cells, double rank, Index nodes, Depth depth) {
  const auto k = static_cast<double>(nodes);
  const double band = std::min(rank, static_cast<double>(kReach + 1) * k + kBlockWidth);
  return 8.0 * (rank * band * (depth == Depth::kValue ? 1.0 : 3.0) + k * (rank + 6.0 * cells));
}

}  // namespace

BinaryPrice binary_price(const Grid& grid, double n, Depth depth) {
  const auto k = static_cast<double>(grid.nodes);
  const double cells = std::min(grid.cells, n);
  const double rank = std::min(n, cells * k);
  BinaryPrice price;
  price.state = 24.0 * rank + CellSums::price(std::min(cells, n / (k + 1.0)), grid.nodes, depth) +
                128.0 * cells;
  price.solve = solve_price(cells, rank, grid.nodes, depth);
  price.rank = rank;
  return price;
}

double solve_price(const CellSums& sums) {
  double rank = 0.0;
  for (Index slot = 0; slot < sums.count(); ++slot) {
    const Cell& cell = sums.cell(slot);
    rank += cell.dense() ? static_cast<double>(sums.grid().nodes)
                         : static_cast<double>(cell.points.size());
  }
  const auto cells = static_cast<double>(sums.count());
  return solve_price(cells, rank, sums.grid().nodes, sums.depth());
}

Vector binary_label_parts(const LabelKernel& label) {
  if (label.kronecker()) return Vector::Ones(2);
  return (label.factor.row(1) - label.factor.row(0)).cwiseAbs2().transpose();
}

double binary_label_error(const LabelKernel& label, double off, double u, double n_ridge,
                          double value) {
  const double scale = 2.0 * (label.kronecker() ? 2.0 : label.factor.squaredNorm());
  return scale * (2.0 * off * u + off * off * n_ridge + 32.0 * kUnit * value);
}

namespace {

// |value - exact| <= the certificate.
//
// Let E = exact K - A M A', |sqrt(w) E sqrt(w)'| <= e < ridge / 100. Along K + tau E the value
// changes by V'E V - 2 U'E V, U = K W V, and V and U themselves by at most 3 (e / ridge) |V|, so
//   |error| <= |V'E V| + 2 |U'E V| + 12 e^2 |V|^2 / ridge.
// |E_ij| is at most `near` where the cells of i and j see each other, and `far` elsewhere
// (grid.hpp). With s_c(X) = sqrt(N_c) |X_c| >= sum_(i in c) w_i |x_i|, N_c the weight of a cell,
//   |X'E Y| <= near sum_(c sees d) s_c(X) s_d(Y) + far (sum_c s_c(X)) (sum_c s_c(Y)).
// Rows orthogonal to F count in V: ridge^2 |V_c|^2 = ridge^2 |V~_c|^2 + |r_c|^2 - |b_c|^2.
//
// Rounding. M and the linear part are off by some eps: kRounding eps in `near` and `far`. Moments
// are off by some eps of N_c and of sqrt(N_c) |r_c|: with u, f as series, dS moves the value by -2
// u'dS f and dB by 2 u'dB, at most |u|_1 |f|_1 and |u|_1 times that. (What the jitter of
// factor_moments leaves is of second order.) The factorisation rounds K~ + ridge I and b, which
// adds 2 eps |U_c| (ridge |V_c| + |r_c|). kRounding = 32 and 16 stand for the lengths of sums, as
// elsewhere; on 8,100 random problems (bandwidth 1e-6 .. 1e3, lambda 1e-8 .. 10, weights 0 .. 1e6;
// studies/two_classes.py) the error was at most 0.53 of the certificate.
//
// Rows that miss the simplex by delta (binary_rows.hpp) move the Gaussian by
// 0.86 min(delta, 4 eps) / bandwidth + (delta / bandwidth)^2, the linear part by 2 delta and R by
// delta (binary_label_error). No value exceeds |r|^2 / (4 ridge), because W K W <= I / (4 ridge).
class Certificate {
 public:
  Certificate(const CellSums& sums, const CellProblem& problem, double ridge)
      : kernel_(problem.kernel()), ridge_(ridge), weight_(sums.weight), norms_(sums.norms) {
    constexpr double kRounding = 32.0;
    const double off = sums.off_simplex;
    const Grid& grid = kernel_.grid();
    const double apart = off / grid.bandwidth;
    const double shift = 0.86 * std::min(off, kOnSimplex) / grid.bandwidth + apart * apart;
    near_ = grid.error() + kRounding * 2.0 * kUnit + shift;
    far_ = std::exp(-36.0) + (kernel_.linear() ? kRounding * 2.0 * kUnit + 2.0 * off : 0.0);
    rounding_ = kRounding * 2.0 * kUnit;
    off_ = off;
  }

  double bound(const CellSums& sums, const CellProblem& problem, const Vector& b, const Vector& v,
               const Vector& u, const CellSolution& series, const LabelKernel& label,
               double value) const {
    const double l = binary_label_parts(label).sum();
    const Index count = kernel_.count();
    Vector root(count), v_c(count), u_c(count), r_c(count);
    double rounded = 0.0;  // sum_c |u|_1 (N_c |f|_1 + sqrt(N_c) |r_c|)
    for (Index c = 0; c < count; ++c) {
      const auto segment = [&](const Vector& x) {
        return x.segment(problem.begin(c), problem.rank(c));
      };
      const double squares = sums.norms_of(kernel_.slot(c));
      const double outside = std::max(0.0, squares - segment(b).squaredNorm());
      root[c] = std::sqrt(sums.weight_of(kernel_.slot(c)));
      v_c[c] = std::sqrt(segment(v).squaredNorm() + outside / (ridge_ * ridge_));
      u_c[c] = segment(u).norm();
      r_c[c] = std::sqrt(squares);
      rounded +=
          series.u.col(c).lpNorm<1>() * root[c] * (root[c] * series.f.col(c).lpNorm<1>() + r_c[c]);
    }
    const Vector s_v = root.cwiseProduct(v_c);
    const Vector s_u = root.cwiseProduct(u_c);
    const Vector seen = seen_sums(s_v);
    const double first_order = near_ * (s_v.dot(seen) + 2.0 * s_u.dot(seen)) +
                               far_ * (s_v.sum() + 2.0 * s_u.sum()) * s_v.sum() +
                               2.0 * rounding_ * ridge_ * u_c.dot(v_c) +
                               2.0 * rounding_ * u_c.dot(r_c) + 32.0 * kUnit * rounded;
    const double e =
        near_ * seen_sums(root.cwiseAbs2()).maxCoeff() + far_ * weight_;  // of |sqrt(w) E sqrt(w)|
    const double most = std::max(value, norms_ / (4.0 * ridge_));
    const double kernel_error =
        100.0 * e < ridge_ ? std::min(most, first_order + 12.0 * e * e * v_c.squaredNorm() / ridge_)
                           : most;
    return l * kernel_error +
           binary_label_error(label, off_, u_c.dot(root), weight_ / ridge_, value);
  }

 private:
  // out_c = the sum of x over the cells that c sees
  Vector seen_sums(const Vector& x) const {
    Vector out = Vector::Zero(x.size());
    for (Index c = 0; c < x.size(); ++c)
      for (Index d = c; d < kernel_.end(c); ++d) {
        out[c] += x[d];
        if (d > c) out[d] += x[c];
      }
    return out;
  }

  const CellKernel& kernel_;
  double ridge_, weight_, norms_;
  double near_, far_, rounding_, off_;
};

// sum_i w_i (u_i (r_i - f_i))^2. From moments it is u^2 with w r^2, u^2 f with w r, u^2 f^2 with w,
// which cancels where r_i - f_i << r_i: where lambda is small and r is a smooth function of p.
double influence_squares(const CellSums& sums, const CellKernel& kernel, const Matrix& f,
                         const Matrix& u) {
  const auto dot = [](const std::vector<double>& series, const double* moments) {
    double sum = 0.0;
    for (std::size_t j = 0; j < series.size(); ++j) sum += series[j] * moments[j];
    return sum;
  };
  Vector t(kernel.nodes());
  double sum = 0.0;
  for (Index c = 0; c < kernel.count(); ++c) {
    const Index slot = kernel.slot(c);
    for (const Point& point : sums.cell(slot).points) {
      chebyshev(kernel.grid().place(point.p, kernel.cell(c)), t.size(), t.data());
      const double f_p = point.p + f.col(c).dot(t);
      const double u_p = u.col(c).dot(t);
      sum += u_p * u_p * (point.w1 * (1.0 - f_p) * (1.0 - f_p) + point.w0 * f_p * f_p);
    }
    if (!sums.cell(slot).dense()) continue;
    const auto series = [c](const Matrix& of) {
      return std::vector<double>(of.col(c).data(), of.col(c).data() + of.rows());
    };
    const std::vector<double> u_u = chebyshev_product(series(u), series(u));
    const std::vector<double> u_f = chebyshev_product(series(u), series(f));
    sum += dot(u_u, sums.wr2(slot)) - 2.0 * dot(chebyshev_product(u_f, series(u)), sums.wr(slot)) +
           dot(chebyshev_product(u_f, u_f), sums.w(slot));
  }
  return sum;
}

}  // namespace

CellSolution solve_cells(const CellSums& sums, const LabelKernel& label, bool linear, double ridge,
                         Parallel& parallel, const Samples* samples) {
  const Vector parts = binary_label_parts(label);
  CellSolution out;
  out.solution.per_class = Vector::Zero(parts.size());
  if (sums.count() == 0) return out;
  const CellProblem problem(sums, linear, ridge, parallel);
  const CellKernel& kernel = problem.kernel();

  const Vector b = problem.compress_residuals();
  const Vector v = problem.solve_refined(b, parallel);  // V = W b
  const Matrix z = problem.expand(v);                   // A'sqrt(w) V
  const Vector w_v = problem.solve_refined(v, parallel);
  out.cells = kernel.cells();
  out.f = kernel.apply(z, parallel);
  out.u = kernel.apply(problem.expand(w_v), parallel);
  const Vector u = problem.project(out.u);  // U = K~ W V

  double value = z.cwiseProduct(out.f).sum();
  for (Index c = 0; c < kernel.count(); ++c)  // d value / dS = -2 u f'
    value += 2.0 * problem.jitter(c) * out.u.col(c).dot(out.f.col(c));
  value = std::max(value, 0.0);  // as a norm is, whatever rounding says
  out.solution.per_class = parts * value;
  out.solution.value = out.solution.per_class.sum();
  out.solution.bound =
      Certificate(sums, problem, ridge).bound(sums, problem, b, v, u, out, label, value);
  if (sums.depth() == Depth::kValue) return out;

  if (samples && samples->groups) {
    out.solution.debias = parts.sum() * debias_by_group(problem, sums, *samples, parallel);
    out.solution.floor = kNoFloor;
    return out;
  }
  const auto [norms, spreads] = problem.diagonal_terms(parallel);
  out.solution.debias = parts.sum() * norms;
  out.solution.floor = parts.sum() * spreads;
  if (sums.depth() != Depth::kStream) return out;

  // psi_i = 2 N ridge (t_i - mean t), t_i = l u_i (r_i - f_i) / ridge, and sum_i w_i t_i = l U'V.
  const double squares = influence_squares(sums, kernel, out.f, out.u) / (ridge * ridge);
  const double scale = 2.0 * sums.weight * ridge * parts.sum();
  const double mean = u.dot(v);
  out.influence_square = scale * scale * std::max(0.0, squares - mean * mean / sums.weight);
  return out;
}

Solution ckce_binary(const Grid& grid, const Samples& samples, const LabelKernel& label,
                     bool linear, double ridge, bool full, Parallel& parallel) {
  parallel.span(0.0, 0.4);
  CellSums sums(grid, full ? Depth::kEstimate : Depth::kValue);
  sums.add(samples, parallel);
  CellSolution cells = solve_cells(sums, label, linear, ridge, parallel, &samples);
  Solution solution = std::move(cells.solution);
  if (!full) return solution;

  parallel.span(0.7, 1.0);
  const CellFunctions functions(cells.cells, {std::move(cells.f), std::move(cells.u)});
  const double l = binary_label_parts(label).sum();
  solution.influence.resize(samples.n());
  double total = 0.0;  // sum_i w_i t_i
  parallel.each((samples.n() + kBlock - 1) / kBlock, [&] {
    return [&, rows = CellRows(grid), values = Matrix(kBlock, 2)](Index block) mutable {
      rows.load(samples, block);
      functions.evaluate(rows, values);
      double sum = 0.0;
      for (Index i = 0; i < rows.rows; ++i) {
        const double t = l * values(i, 1) * (rows.y[i] - rows.p[i] - values(i, 0)) / ridge;
        sum += rows.w[i] * t;
        solution.influence[rows.begin + i] = t;
      }
      parallel.in_turn(block, [&] { total += sum; });
    };
  });
  const double mean = total / sums.weight;
  const double scale = 2.0 * sums.weight * ridge;
  for (Index i = 0; i < samples.n(); ++i)
    solution.influence[i] = samples.weight(i) > 0.0 ? scale * (solution.influence[i] - mean) : 0.0;
  return solution;
}

}  // namespace ckce
