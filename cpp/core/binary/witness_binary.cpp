#include "core/binary/witness_binary.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/binary/cell_problem.hpp"
#include "core/binary/cell_rows.hpp"
#include "core/binary/row_forms.hpp"

namespace ckce {

Matrix own_witness_binary(const Grid& grid, const Samples& samples, bool linear, double ridge,
                          Parallel& parallel) {
  CellSums sums(grid, Depth::kValue);
  sums.add(samples, parallel);
  const CellProblem problem(sums, linear, ridge, parallel);
  const CellKernel& kernel = problem.kernel();
  const Vector v = problem.solve_refined(problem.compress_residuals(), parallel);
  const Matrix f = kernel.apply(problem.expand(v), parallel);
  // The weight that F gives to a copy of a row at its own prediction, a'M (ridge I + S M)^-1 a.
  // With sqrt(w) A = Q F' it is a'F'^-1 (I - ridge W) F^-1 a, where I - ridge W rounds by some eps
  // of 1, as 1 - h does.
  RowForms leverage(problem);
  problem.each_inverse(
      [&](Index c, const Matrix& w) {
        leverage.set(problem, sums, c, Matrix::Identity(w.rows(), w.cols()) - ridge * w);
      },
      parallel);
  std::unordered_map<std::int64_t, Index> index;
  for (Index c = 0; c < kernel.count(); ++c) index.emplace(kernel.cell(c), c);
  Matrix out(samples.n(), 2);
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, rows = CellRows(grid), t = Vector(leverage.series.rows())](Index block) mutable {
      rows.load(samples, block);
      rows.each_cell([&](std::int64_t cell, Index first, Index last) {
        const auto found = index.find(cell);
        for (Index place = first; place < last; ++place) {
          const Index i = rows.row(place);
          double at = 0.0, h = 0.0;
          if (found != index.end()) {  // else another thread wrote into the caller's array
            const Index c = found->second;
            chebyshev(rows.t(i), t.size(), t.data());
            at = f.col(c).dot(t.head(f.rows()));
            if (problem.dense(c)) h = leverage.series.col(c).dot(t);
            Index j = problem.begin(c);
            for (const Point& point : sums.cell(kernel.slot(c)).points) {
              if (point.p == rows.p[i]) h = leverage.points[j];
              ++j;
            }
          }
          h *= std::min(samples.weight(rows.begin + i), 1.0);
          const double own = (at - h * (rows.y[i] - rows.p[i])) / (1.0 - h);
          out(rows.begin + i, 0) = -own;
          out(rows.begin + i, 1) = own;
        }
      });
    };
  });
  return out;
}

}  // namespace ckce
