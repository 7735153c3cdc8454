// r -> (G G' + ridge I)^-1 r = (r - G (G'G + ridge I)^-1 G'r) / ridge, G a pivoted-Cholesky factor
// of K: near (K + ridge I)^-1 where the spectrum of K decays. O(n rank) a time.
#pragma once

#include <functional>
#include <memory>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"
#include "core/features/cholesky.hpp"
#include "core/linalg/ridge_solve.hpp"

namespace ckce {

class Preconditioner {
 public:
  // Of this rank; 0: of one that pays for itself in steps that share one length for all columns.
  // O(n rank (m + rank))
  Preconditioner(const Gram& gram, const Samples& samples, double ridge, Parallel& parallel,
                 Index rank = 0);

  // More columns of G, until tr(K - G G') <= tol tr K. O(n rank (m + rank))
  void extend(const Gram& gram, Index rank, double tol, Parallel& parallel);

  // The same until enough(), a few at a time. False if `most` are too few: G then has more columns
  // than what follows knows of, and is of no use.
  bool extend_until(const Gram& gram, Index most, const std::function<bool()>& enough,
                    Parallel& parallel);

  // z = (G G' + ridge I)^-1 r  (n, width)
  void apply(const Panels& r, Panels& z, Parallel& parallel) const;
  // z = G G' r  (n, width)
  void apply_factor(const Panels& r, Panels& z, Parallel& parallel) const;
  // The first k columns of G.  (n, k)
  Panels first_columns(Index k, Parallel& parallel) const;
  // |(G'G + ridge I)^-1 g_i|^2, the diagonal of A = W K W of G G' in place of K. (n,) O(n rank^2)
  Vector diagonal(Parallel& parallel) const;

  const Cholesky& factor() const { return factor_; }      // without weights
  const RidgeSolver& solver() const { return *solver_; }  // G'G + ridge I

 private:
  void factorise(Parallel& parallel);                         // G'G + ridge I
  Matrix project(const Panels& r, Parallel& parallel) const;  // G'r (rank, width)
  In panel(Index i, Matrix& copy) const;  // rows of sqrt(w) G, in `copy` if they need one

  const Samples& samples_;
  const Points& points_;
  double ridge_;
  Cholesky factor_;
  std::unique_ptr<RidgeSolver> solver_;
};

}  // namespace ckce
