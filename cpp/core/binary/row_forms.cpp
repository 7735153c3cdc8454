#include "core/binary/row_forms.hpp"

#include <cstdlib>

#include "core/linalg/products.hpp"

namespace ckce {

RowForms::RowForms(const CellProblem& problem)
    : series(Matrix::Zero(2 * problem.kernel().nodes() - 1, problem.kernel().count())),
      points(Vector::Zero(problem.rank())) {}

void RowForms::set(const CellProblem& problem, const CellSums& sums, Index c, Matrix p) {
  if (!problem.dense(c)) {
    Index j = 0;
    for (const Point& point : sums.cell(problem.kernel().slot(c)).points) {
      points[problem.begin(c) + j] = p(j, j) / point.w();
      ++j;
    }
    return;
  }
  solve_lower_transposed(problem.basis(c), p);
  solve_lower_from_right(problem.basis(c), p);
  // T_a T_b = (T_{a+b} + T_{|a-b|}) / 2
  for (Index b = 0; b < p.cols(); ++b)
    for (Index a = 0; a < p.rows(); ++a) {
      series(a + b, c) += 0.5 * p(a, b);
      series(std::abs(a - b), c) += 0.5 * p(a, b);
    }
}

}  // namespace ckce
