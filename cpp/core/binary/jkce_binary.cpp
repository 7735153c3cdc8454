#include "core/binary/jkce_binary.hpp"

#include <algorithm>
#include <vector>

#include "core/binary/cell_kernel.hpp"
#include "core/binary/ckce_binary.hpp"

namespace ckce {
namespace {

using Series = std::vector<double>;

// k(p, p), whose own part is 1
double diagonal_kernel(double p, bool linear) {
  return linear ? 1.0 + p * p + (1.0 - p) * (1.0 - p) : 1.0;
}

Matrix residual_series(const CellSums& sums, const CellKernel& kernel) {
  Matrix b(kernel.nodes(), kernel.count());
  for (Index c = 0; c < kernel.count(); ++c) b.col(c) = sums.residuals_of(kernel.slot(c));
  return b;
}

JkceSums sums_of(const CellSums& sums, const Matrix& b, const Matrix& g, bool linear, double l) {
  JkceSums out;
  out.diagonal = l * (sums.norms + (linear ? sums.linear_norms : 0.0));
  out.off_diagonal = l * b.cwiseProduct(g).sum() - out.diagonal;
  return out;
}

Series sum(Series a, const Series& b) {
  a.resize(std::max(a.size(), b.size()), 0.0);
  for (std::size_t j = 0; j < b.size(); ++j) a[j] += b[j];
  return a;
}

Series scaled(Series a, double by) {
  for (double& x : a) x *= by;
  return a;
}

double dot(const Series& a, const double* moments) {
  double sum = 0.0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * moments[j];
  return sum;
}

// sum_i w_i (r_i g_i - k_i r_i^2)^2 of a dense cell: with s = 1 - 2p and v = p (1 - p),
// r^3 = s r^2 + v r and r^4 = (s^2 + v) r^2 + s v r.
double rows_square(const CellSums& sums, const CellKernel& kernel, Index c, const Series& g) {
  const Eigen::Matrix2d line = kernel.line(c);
  const Series p = {line(0, 0), line(1, 0)};
  const Series q = {line(0, 1), line(1, 1)};
  const Series s = sum(q, scaled(p, -1.0));
  const Series v = chebyshev_product(p, q);
  Series k = {1.0};
  if (kernel.linear()) k = sum(k, sum(chebyshev_product(p, p), chebyshev_product(q, q)));
  const Series k_k = chebyshev_product(k, k);
  const Series g_k = scaled(chebyshev_product(g, k), -2.0);
  const Series of_r2 =
      sum(chebyshev_product(g, g),
          sum(chebyshev_product(g_k, s), chebyshev_product(k_k, sum(chebyshev_product(s, s), v))));
  const Series of_r =
      sum(chebyshev_product(g_k, v), chebyshev_product(k_k, chebyshev_product(s, v)));
  return dot(of_r2, sums.wr2(kernel.slot(c))) + dot(of_r, sums.wr(kernel.slot(c)));
}

double rows_square(const Cell& cell, const CellKernel& kernel, const Series& g) {
  Vector t(kernel.nodes());
  double sum = 0.0;
  for (const Point& point : cell.points) {
    chebyshev(kernel.grid().place(point.p, cell.cell), t.size(), t.data());
    const double at = t.dot(Eigen::Map<const Vector>(g.data(), t.size()));
    const double k = diagonal_kernel(point.p, kernel.linear());
    const auto row = [&](double r) { return r * (at - k * r); };
    sum += point.w0 * row(-point.p) * row(-point.p) +
           point.w1 * row(1.0 - point.p) * row(1.0 - point.p);
  }
  return sum;
}

}  // namespace

CellJkce jkce_cells(const CellSums& sums, const LabelKernel& label, bool linear,
                    Parallel& parallel) {
  const CellKernel kernel(sums, linear, parallel);
  const double l = binary_label_parts(label).sum();
  const Matrix b = residual_series(sums, kernel);
  const Matrix g = kernel.apply(b, parallel);
  CellJkce out;
  out.sums = sums_of(sums, b, g, linear, l);
  if (sums.depth() != Depth::kStream) return out;
  for (Index c = 0; c < kernel.count(); ++c) {
    const Series series(g.col(c).data(), g.col(c).data() + g.rows());
    const Cell& cell = sums.cell(kernel.slot(c));
    out.rows_square +=
        l * l *
        (cell.dense() ? rows_square(sums, kernel, c, series) : rows_square(cell, kernel, series));
  }
  return out;
}

JkceSums jkce_binary(const Grid& grid, const Samples& samples, const LabelKernel& label,
                     bool linear, bool full, Parallel& parallel) {
  parallel.span(0.0, full ? 0.5 : 1.0);
  CellSums sums(grid, Depth::kValue);
  sums.add(samples, parallel);
  const CellKernel kernel(sums, linear, parallel);
  const double l = binary_label_parts(label).sum();
  const Matrix b = residual_series(sums, kernel);
  Matrix g = kernel.apply(b, parallel);
  JkceSums out = sums_of(sums, b, g, linear, l);
  if (!full) return out;

  parallel.span(0.5, 1.0);
  const CellFunctions functions(kernel.cells(), {std::move(g)});
  out.rows.resize(samples.n());
  parallel.each((samples.n() + kBlock - 1) / kBlock, [&] {
    return [&, rows = CellRows(grid), values = Matrix(kBlock, 1)](Index block) mutable {
      rows.load(samples, block);
      functions.evaluate(rows, values);
      for (Index i = 0; i < rows.rows; ++i) {
        const double r = rows.y[i] - rows.p[i];
        out.rows[rows.begin + i] = l * r * (values(i, 0) - diagonal_kernel(rows.p[i], linear) * r);
      }
    };
  });
  return out;
}

}  // namespace ckce
