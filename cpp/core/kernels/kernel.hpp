// k(p, q) on the simplex, evaluated in (kPanel, kPanel) tiles.
//
// A kernel is <p, q> (if it has a linear part) plus a part of its own that `tile` computes. The
// linear part is kept apart because its products cost O(n m^2), not O(n^2 m).
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"

namespace ckce {

// Samples as a kernel sees them: Q, and Q in the kernel's own coordinates.
struct Points {
  Panels q;              // (n, m)
  Panels x;              // (n, m), empty if the kernel reads q, or if not `expanded`
  Matrix half_norms;     // (kPanel, panels), |x_i|^2 / 2
  bool expanded = true;  // |x-y|^2 = |x|^2 + |y|^2 - 2<x,y> is accurate enough here

  Index n() const { return q.n(); }
  // The chosen rows as points of their own, in the same coordinates.
  Points subset(const std::vector<Index>& rows) const;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual bool has_linear_part() const { return false; }
  virtual bool has_own_part() const { return true; }
  // What the own part is of two classes, where it is a function of p - p'.
  enum class Line { kNone, kGaussian, kLaplace };
  virtual Line line() const { return Line::kNone; }
  virtual double bandwidth() const { return 1.0; }
  // The own part h has the gradient -steepness h(p, q) (p - q) in p; 0 where it has none of this
  // form. A linear part has a gradient anyway.
  virtual double steepness() const { return 0.0; }
  // Fills the kernel's own coordinates of points.q, whose rows have this mean.
  virtual void prepare(Points&, const Vector& /*mean*/, Parallel&) const {}
  // out(i, j) = k(a_i, b_j) - <a_i, b_j> [linear part], for panel `i` of a and panel `j` of b.
  virtual void tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const = 0;

  Points points(const Probs& probs, Parallel& parallel) const;
  // Rows in coordinates of other points, whose mean is given.
  Points points(const In& rows, const Vector& mean, Parallel& parallel) const;
  // out(i, j) = k(a_i, b_j)
  void full_tile(const Points& a, Index i, const Points& b, Index j, MatrixRef out) const;
  // How far rounding may move an entry of K, at most: over these points; over any of the simplex.
  double entry_error(const Points& points) const;
  double entry_error(Index m) const;
  // k(q_i, q_i) (n,); every own part here is 1 on the diagonal.
  Vector diagonal(const Points& points, Parallel& parallel) const;
  Vector diagonal(const In& q) const;

 protected:
  // Up to this |x|^2 / 2 squared distances are expanded; `kFar`: they are not.
  static constexpr double kMostExpanded = 64.0;
  static constexpr double kFar = std::numeric_limits<double>::infinity();
  // By how many units u rounding of the exponent moves k(p, q), at most, if |x|^2 / 2 <= half_norm.
  virtual double exponent_error(Index /*m*/, double /*half_norm*/) const { return 0.0; }

 private:
  double entry_error(Index m, double exponent) const;
};

// K over points, of which tiles are computed as they are needed. (n, n)
struct Gram {
  const Kernel& kernel;
  const Points& points;

  Index n() const { return points.n(); }
};

std::unique_ptr<Kernel> make_kernel(const std::string& name, double bandwidth);  // registry.cpp

}  // namespace ckce
