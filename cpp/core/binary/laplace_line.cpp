#include "core/binary/laplace_line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/groups.hpp"
#include "core/binary/binary_rows.hpp"
#include "core/binary/cell_sums.hpp"
#include "core/binary/ckce_binary.hpp"
#include "core/metrics/ckce_parts.hpp"

namespace ckce {
namespace {

// Rows sorted by p, and the different p among those that weigh anything.
class Line {
 public:
  Line(const Samples& samples, double bandwidth, Parallel& parallel) {
    sort(samples, parallel);
    of_row_.resize(as_size(samples.n()));
    for (const auto& [p, row] : sorted_) {
      const double w = samples.weight(row);
      of_row_[as_size(row)] = -1;
      if (!(w > 0.0)) continue;
      if (points.empty() || points.back().p != p) points.push_back({p, 0.0, 0.0});
      (samples.labels[row] == 1 ? points.back().w1 : points.back().w0) += w;
      of_row_[as_size(row)] = count() - 1;
      weight += w;
    }
    phi.resize(count());
    rest.resize(count());
    for (Index d = 0; d < count(); ++d) {
      const double apart = d == 0 ? 0.0 : 2.0 * (point(d).p - point(d - 1).p) / bandwidth;
      phi[d] = d == 0 ? 0.0 : std::exp(-apart);
      rest[d] = d == 0 ? 1.0 : -std::expm1(-2.0 * apart);
    }
  }

  Index count() const { return static_cast<Index>(points.size()); }
  const Point& point(Index d) const { return points[as_size(d)]; }
  Index of_row(Index i) const { return of_row_[as_size(i)]; }  // -1 if it weighs nothing

  // z'K z = sum_d (1 - phi_d^2) zeta_d^2, zeta_d = z_d + phi_(d+1) zeta_(d+1)
  double form(const Vector& z) const {
    double sum = 0.0;
    double zeta = 0.0;
    for (Index d = count() - 1; d >= 0; --d) {
      zeta += z[d];
      sum += rest[d] * zeta * zeta;
      zeta *= phi[d];
    }
    return sum;
  }

  // K z
  Vector apply(const Vector& z) const {
    Vector out = z;
    double left = 0.0;
    double right = 0.0;
    for (Index d = 0; d < count(); ++d) {
      left *= phi[d];
      out[d] += left;
      left += z[d];
    }
    for (Index d = count() - 1; d >= 0; --d) {
      out[d] += right;
      right = phi[d] * (right + z[d]);
    }
    return out;
  }

  std::vector<Point> points;
  double weight = 0.0;
  double off = 0.0;  // max |q_0 + q_1 - 1|
  Vector phi, rest;  // towards the point before, and 1 - phi^2; 0 and 1 for the first

 private:
  struct Place {
    double p;
    Index row;
    bool operator<(const Place& other) const {
      return p != other.p ? p < other.p : row < other.row;
    }
  };

  // Chunks, then pairs of chunks: equal p in the order of their rows.
  void sort(const Samples& samples, Parallel& parallel) {
    constexpr Index kRows = 64 * kBlock;
    const Index n = samples.n();
    sorted_.resize(as_size(n));
    Vector chunk_off = Vector::Zero((n + kRows - 1) / kRows + 1);
    parallel.each((n + kRows - 1) / kRows, [&] {
      return [&, rows = BinaryRows()](Index chunk) mutable {
        const Index end = std::min((chunk + 1) * kRows, n);
        for (Index begin = chunk * kRows; begin < end; begin += kBlock) {
          rows.load(samples, begin, std::min(kBlock, end - begin));
          for (Index i = 0; i < rows.rows; ++i)
            sorted_[as_size(begin + i)] = {rows.p[i], begin + i};
          chunk_off[chunk] = std::max(chunk_off[chunk], rows.off);
        }
        std::sort(sorted_.begin() + chunk * kRows, sorted_.begin() + end);
      };
    });
    off = chunk_off.maxCoeff();
    for (Index width = kRows; width < n; width *= 2)
      parallel.each((n + 2 * width - 1) / (2 * width), [&] {
        return [&](Index pair) {
          const Index begin = pair * 2 * width;
          if (begin + width >= n) return;
          std::inplace_merge(sorted_.begin() + begin, sorted_.begin() + begin + width,
                             sorted_.begin() + std::min(begin + 2 * width, n));
        };
      });
  }

  std::vector<Place> sorted_;
  std::vector<Index> of_row_;
};

// Information of all other points about each.
class Smoother {
 public:
  Smoother(const Line& line, double ridge)
      : line_(line),
        ridge_(ridge),
        left_(Vector::Zero(line.count())),
        right_(left_),
        left_dot_(left_),
        right_dot_(left_) {
    const Index count = line.count();
    for (Index d = 1; d < count; ++d) step(left_, left_dot_, d - 1, d, d);
    for (Index d = count - 2; d >= 0; --d) step(right_, right_dot_, d + 1, d, d + 1);
  }

  // z of (c + S K) z = B, S = diag(w), with a step of iterative refinement: B - w v h cancels where
  // lambda is small.
  Vector solve(const Vector& b) const {
    const Vector z = pass(b);
    const Vector k_z = line_.apply(z);
    Vector rest = b - ridge_ * z;
    for (Index d = 0; d < line_.count(); ++d) rest[d] -= line_.point(d).w() * k_z[d];
    return z + pass(rest);
  }

  // a'H a of a row at point d
  double diagonal(Index d) const {
    const double v = variance(d);
    const double scale = v / (ridge_ + line_.point(d).w() * v);
    return scale * scale * (1.0 + left_dot_[d] + right_dot_[d]);
  }

 private:
  Vector pass(const Vector& b) const {
    const Index count = line_.count();
    Vector h = Vector::Zero(count);
    double from = 0.0;
    for (Index d = 1; d < count; ++d)
      h[d] = from = message(from + b[d - 1] / ridge_, left_[d - 1], d - 1, d);
    from = 0.0;
    for (Index d = count - 2; d >= 0; --d)
      h[d] += from = message(from + b[d + 1] / ridge_, right_[d + 1], d + 1, d + 1);
    Vector z(count);
    for (Index d = 0; d < count; ++d) {
      const double v = variance(d);
      const double w = line_.point(d).w();
      z[d] = (b[d] - w * v * h[d]) / (ridge_ + w * v);
    }
    return z;
  }

  double variance(Index d) const { return 1.0 / (1.0 + left_[d] + right_[d]); }
  double information(double i, Index d) const { return i + line_.point(d).w() / ridge_; }

  double message(double h, double i, Index from, Index gap) const {
    return line_.phi[gap] * h / (1.0 + line_.rest[gap] * information(i, from));
  }
  // `dots` hold -I_dot.
  void step(Vector& is, Vector& dots, Index from, Index to, Index gap) const {
    const double j = information(is[from], from);
    const double phi2 = line_.phi[gap] * line_.phi[gap];
    const double shrink = 1.0 / (1.0 + line_.rest[gap] * j);
    is[to] = phi2 * j * shrink;
    dots[to] = phi2 * (dots[from] + line_.rest[gap] * j * j) * shrink * shrink;
  }

  const Line& line_;
  double ridge_;
  Vector left_, right_, left_dot_, right_dot_;
};

// sum_g z_g'K z_g of the residuals of each group alone. O(groups points)
double debias_by_group(const Line& line, const Smoother& smoother, const Samples& samples,
                       Parallel& parallel) {
  const Groups& groups = *samples.groups;
  double total = 0.0;
  parallel.each(groups.count(), [&] {
    return [&, b = Vector(line.count())](Index g) mutable {
      b.setZero();
      for (const Index i : groups.rows(g)) {
        const Index d = line.of_row(i);
        if (d < 0) continue;
        b[d] += samples.weight(i) * ((samples.labels[i] == 1 ? 1.0 : 0.0) - line.point(d).p);
      }
      const double form = line.form(smoother.solve(b));
      parallel.in_turn(g, [&] { total += form; });
    };
  });
  return total;
}

Vector residual_sums(const Line& line) {
  Vector b(line.count());
  for (Index d = 0; d < line.count(); ++d) b[d] = line.point(d).wr();
  return b;
}

}  // namespace

Solution ckce_laplace_line(double bandwidth, const Samples& samples, const LabelKernel& label,
                           double ridge, bool full, Parallel& parallel) {
  constexpr double kRounding = 32.0 * std::numeric_limits<double>::epsilon();
  const Line line(samples, bandwidth, parallel);
  const Smoother smoother(line, ridge);
  const Vector parts = binary_label_parts(label);
  const double l = parts.sum();
  const Vector z = smoother.solve(residual_sums(line));
  const Vector u = line.apply(smoother.solve(z));  // K W V

  Solution solution;
  const double value = line.form(z);
  solution.per_class = parts * value;
  solution.value = solution.per_class.sum();

  // v of a row with label y: z / w is the mean over the point, and r - mean r is +-(share of the
  // other label). r - f would cancel.
  const auto dual = [&](Index d, bool y) {
    const Point& point = line.point(d);
    return ((y ? point.w0 : -point.w1) / ridge + z[d]) / point.w();
  };
  double v_v = 0.0, u_u = 0.0, r_r = 0.0;
  Vector s_v(line.count()), s_u(line.count());  // sqrt(w) |X_d| >= sum_(i in d) w_i |x_i|
  for (Index d = 0; d < line.count(); ++d) {
    const Point& point = line.point(d);
    const double w = point.w();
    const double v =
        point.w1 * dual(d, true) * dual(d, true) + point.w0 * dual(d, false) * dual(d, false);
    s_v[d] = std::sqrt(w * v);
    s_u[d] = w * std::abs(u[d]);
    v_v += v;
    u_u += w * u[d] * u[d];
    r_r += point.wr2();
  }
  // A change E of K moves the value by V'E V - 2 U'E V to first order (ckce_binary.cpp). |E_ij| <=
  // e k_ij: products of phi round relatively, and so does the distance; rows that miss the simplex
  // by delta move k by 4 delta / bandwidth of it. K + c and B round by some eps.
  const double v_norm = std::sqrt(v_v), u_norm = std::sqrt(u_u);
  const double e = kRounding + 4.0 * line.off / bandwidth;
  const double first_order = e * (s_v + 2.0 * s_u).dot(line.apply(s_v)) +
                             2.0 * kRounding * u_norm * (ridge * v_norm + std::sqrt(r_r));
  const double most = std::max(value, r_r / (4.0 * ridge));
  const double second_order = 12.0 * (e * line.weight) * (e * line.weight) * v_v / ridge;
  const double kernel_error =
      100.0 * e * line.weight < ridge ? std::min(most, first_order + second_order) : most;
  solution.bound =
      l * kernel_error + binary_label_error(label, line.off, s_u.sum(), line.weight / ridge, value);
  if (!full) return solution;

  double mean = 0.0;
  for (Index d = 0; d < line.count(); ++d) {
    const Point& point = line.point(d);
    solution.debias += l * smoother.diagonal(d) * point.wr2();
    solution.floor += l * smoother.diagonal(d) * point.wpq();
    mean += l * u[d] * z[d];
  }
  if (samples.groups) {
    solution.debias = l * debias_by_group(line, smoother, samples, parallel);
    solution.floor = kNoFloor;
  }
  mean /= line.weight;
  solution.influence.resize(samples.n());
  for (Index i = 0; i < samples.n(); ++i) {
    const Index d = line.of_row(i);
    solution.influence[i] =
        d < 0 ? 0.0
              : 2.0 * line.weight * ridge * (l * u[d] * dual(d, samples.labels[i] == 1) - mean);
  }
  return solution;
}

JkceSums jkce_laplace_line(double bandwidth, const Samples& samples, const LabelKernel& label,
                           bool full, Parallel& parallel) {
  const Line line(samples, bandwidth, parallel);
  const double l = binary_label_parts(label).sum();
  const Vector b = residual_sums(line);
  JkceSums out;
  for (Index d = 0; d < line.count(); ++d) out.diagonal += l * line.point(d).wr2();
  out.off_diagonal = l * line.form(b) - out.diagonal;
  if (!full) return out;
  const Vector g = line.apply(b);
  out.rows = Vector::Zero(samples.n());
  for (Index i = 0; i < samples.n(); ++i) {
    const Index d = line.of_row(i);
    if (d < 0) continue;
    const double r = (samples.labels[i] == 1 ? 1.0 : 0.0) - line.point(d).p;
    out.rows[i] = l * r * (g[d] - r);
  }
  return out;
}

}  // namespace ckce
