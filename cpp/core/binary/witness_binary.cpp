#include "core/binary/witness_binary.hpp"

#include <cstdlib>
#include <unordered_map>

#include "core/binary/cell_problem.hpp"
#include "core/binary/cell_rows.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// h(p) = a'M (ridge I + S M)^-1 a, the weight that F gives to a copy of a row at its own
// prediction. With sqrt(w) A = Q F' it is a'F'^-1 (I - ridge W) F^-1 a: a series of degree 2k - 2
// in a dense cell, a number for each point elsewhere. I - ridge W rounds by some eps of 1, as 1 - h
// does.
struct Leverage {
  Leverage(const CellProblem& problem, const CellSums& sums, double ridge, Parallel& parallel)
      : series(Matrix::Zero(2 * problem.kernel().nodes() - 1, problem.kernel().count())),
        points(Vector::Zero(problem.rank())) {
    problem.each_inverse(
        [&](Index c, const Matrix& w) {
          if (!problem.dense(c)) {
            Index j = 0;
            for (const Point& point : sums.cell(problem.kernel().slot(c)).points) {
              points[problem.begin(c) + j] = (1.0 - ridge * w(j, j)) / point.w();
              ++j;
            }
            return;
          }
          Matrix h = Matrix::Identity(w.rows(), w.cols()) - ridge * w;
          solve_lower_transposed(problem.basis(c), h);
          solve_lower_from_right(problem.basis(c), h);
          for (Index b = 0; b < h.cols(); ++b)
            for (Index a = 0; a < h.rows(); ++a) {
              series(a + b, c) += 0.5 * h(a, b);
              series(std::abs(a - b), c) += 0.5 * h(a, b);
            }
        },
        parallel);
  }

  Matrix series;
  Vector points;
};

}  // namespace

Matrix own_witness_binary(const Grid& grid, const Samples& samples, bool linear, double ridge,
                          Parallel& parallel) {
  CellSums sums(grid, Depth::kValue);
  sums.add(samples, parallel);
  const CellProblem problem(sums, linear, ridge, parallel);
  const CellKernel& kernel = problem.kernel();
  const Vector v = problem.solve_refined(problem.compress_residuals(), parallel);
  const Matrix f = kernel.apply(problem.expand(v), parallel);
  const Leverage leverage(problem, sums, ridge, parallel);
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
