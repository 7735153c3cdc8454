// (K + ridge I) V = R and (K + ridge I) U = K V for many columns, up to what is left of them,
//   rho = R - (K + ridge I) V,  tau = K V - (K + ridge I) U:
// CKCE = Tr V'K V + 2 <U, rho> up to 2 |tau| |rho| / ridge + |rho|^2 / (4 ridge).
//
// A step moves V and U by D C, D = P rho, C the (m, m) matrix that leaves least of rho, and of tau:
// m columns sketch whatever of K the preconditioner P misses, and one product with K does what
// conjugate gradients, with one step length for all, need two for. rho moves <U, rho> to first
// order, so K D is a product in float64; tau is only bounded, so U takes its product in float32, on
// the same tiles. (O'Leary 1980, The block conjugate gradient algorithm)
#pragma once

#include <algorithm>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/metrics/conjugate_gradients.hpp"
#include "core/metrics/preconditioner.hpp"

namespace ckce {

// Steps by blocks cost O(n m^2), little beside the O(n^2 m) of a product with K. Below, it is not.
constexpr bool solves_by_blocks(Index n, Index m) { return m >= 256 && n >= 6 * m; }
// A column of the preconditioner costs about 20 n m, and a product with K 3 n^2 m.
constexpr Index block_rank(Index n, Index m) { return std::max<Index>(std::min(2 * m, n / 6), 1); }

struct BlockSolve {
  Panels v;
  Panels kv;
  Panels rho;
  Panels u;
  double tau = 0.0;  // |tau|, at most, but for what rounding moves in kv
  // How far rounding may have moved kv from K V, and rho, in norm.
  double kv_error = 0.0;
  double rho_error = 0.0;
  Index iterations = 0;
  bool done = false;  // the value is right to tol, but for rounding in float64

  // Few products with K are tried. O(n^2 m) each
  BlockSolve(const WeightedGram& gram, const Preconditioner& preconditioner, Panels r, double ridge,
             double tol, Parallel& parallel);

  void release() { kv = rho = u = Panels(); }
  Vector per_class() const;
  double bound(double ridge) const;
  // With what rounding in float64 moves, R by r_error.
  double full_bound(double ridge, double r_error) const;

 private:
  double tau_error_ = 0.0;

  // `of_u`: V stays, so that tiles serve one product in float32 only.
  void step(const WeightedGram& gram, const Preconditioner& preconditioner, double ridge, bool of_u,
            Panels& tau_rows, Parallel& parallel);
  // V and U += D C; `a` becomes (K + ridge I) D.
  void step_by_block(const WeightedGram& gram, double ridge, const Panels& d, const Panels& kd,
                     Panels& a, Panels& tau_rows, Parallel& parallel);
};

}  // namespace ckce
