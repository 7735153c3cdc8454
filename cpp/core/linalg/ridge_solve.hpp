// B -> W B, W = (A + ridge I)^-1 of eq. (4), (7) and (9) of the paper, by a Cholesky factorisation,
// blocked and parallel. W is never formed: an inverse costs three times as much and rounds more.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/types.hpp"

namespace ckce {

class RidgeSolver {
 public:
  // Takes the lower triangle of A (n, n). O(n^3 / 3).
  RidgeSolver(Matrix a, double ridge, Parallel& parallel);

  Index size() const { return factor_.rows(); }
  // (n, columns), on this thread.
  void solve(MatrixRef b) const;
  // Rows `begin`, ... of W B, for a B that is given from there on and zero above.
  void solve_from(Index begin, MatrixRef b) const;
  // (n, columns), columns shared out among the threads.
  void solve(MatrixRef b, Parallel& parallel) const;
  // The lower triangle of W itself (n, n), for what needs all of it. O(2 n^3 / 3)
  Matrix into_inverse(Parallel& parallel) &&;
  // J lower triangular with J'J = W^2, so that |W b| = |J b| takes one product, not two solves.
  // Empty where A + ridge I is near singular. O(n^3)
  Matrix root_of_square(Parallel& parallel) const;
  // |W b_i|^2 of the rows b_i of B, with the root from above. O(rows n^2)
  Vector solved_norms(const Matrix& root, const In& b) const;

 private:
  Matrix factor_;
};

// |J b_i|^2 of the rows b_i of B, J lower triangular. O(rows n^2)
Vector norms_by_root(const Matrix& root, const In& b);

}  // namespace ckce
