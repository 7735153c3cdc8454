// r -> (G G' + ridge I)^-1 r = (r - G (G'G + ridge I)^-1 G'r) / ridge, G a pivoted-Cholesky factor
// of K: near (K + ridge I)^-1 where the spectrum of K decays. O(n rank) a time.
#pragma once

#include <memory>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/cholesky.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {

class Preconditioner {
 public:
  // With a factor of as many columns as pay for themselves in products with K saved. O(n rank (m +
  // rank))
  Preconditioner(const Gram& gram, const Samples& samples, double ridge, Parallel& parallel);
  // With the caller's factor. O(n rank^2)
  Preconditioner(const Cholesky& factor, const Points& points, const Samples& samples, double ridge,
                 Parallel& parallel);

  // z = (G G' + ridge I)^-1 r  (n, width)
  void apply(const Panels& r, Panels& z, Parallel& parallel) const;
  // G'r and (G'G + ridge I)^-1 x  (rank, width)
  Matrix project(const Panels& r, Parallel& parallel) const;
  void solve(Matrix& x, Parallel& parallel) const { solver_->solve(x, parallel); }

 private:
  // total += the sum over panels of what add(panel, sum) adds, stripe by stripe in order.
  template <class Add>
  void sum_over_panels(Matrix& total, Parallel& parallel, Add add) const;
  Matrix panel(Index i) const;  // rows of sqrt(w) G
  void factorise(Parallel& parallel);

  const Samples& samples_;
  const Points& points_;
  double ridge_;
  std::unique_ptr<const Cholesky> own_;
  const Cholesky& factor_;
  std::unique_ptr<RidgeSolver> solver_;
};

}  // namespace ckce
