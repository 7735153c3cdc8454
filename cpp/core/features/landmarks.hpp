// phi(q) = L^-1 K(S, q) for landmarks S (r, m) with L L' = K(S, S): Phi Phi' = K(:, S) K(S, S)^-1
// K(S, :) <= K, the Nystroem approximation. It streams, since S is fixed before the first row.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/features/cholesky.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"

namespace ckce {

// Rows of the sample that make good landmarks, at most `count`: pivots of its Cholesky factor,
// until tr E <= tol tr K or the level of round-off. O(n count (m + count))
std::vector<Index> choose_landmarks(const Kernel& kernel, const Probs& sample, Index count,
                                    double tol, Pivoting pivoting, std::uint64_t seed,
                                    Parallel& parallel);

struct LandmarkFactor {
  Matrix factor;                // L (r, r), lower triangle
  std::vector<Index> repeated;  // landmarks that those before explain down to the level of
                                // round-off; L is without them
};

// O(r^2 (m + r))
LandmarkFactor factor_landmarks(const Kernel& kernel, const Probs& points, Parallel& parallel);

class Landmarks : public Features {
 public:
  // The factor is given, because a state's features must not change: L depends on the machine in
  // its last digits, and where K(S, S) is nearly singular that shows.
  Landmarks(std::shared_ptr<const Kernel> kernel, const Matrix& points, Matrix factor);

  using Features::fill;
  Index d() const override { return factor_.rows(); }
  Index m() const override { return mean_.size(); }
  double line_bandwidth() const override {
    return kernel_->line() == Kernel::Line::kGaussian ? kernel_->bandwidth() : 0.0;
  }
  bool add_sections(LineSections& to) const override;
  // O(r (m + r)) for each row
  void fill(Index begin, const In& q, MatrixRef phi) const override;

  void pull_back(const In& q, const In& phi, const In& phi_bar, MatrixRef q_bar) const override;

  bool certified() const override { return true; }
  Vector left_out(Index begin, const In& q, const In& phi) const override;
  double trace(double weight, double sharpness) const override;
  double slack(const Matrix& phi_phi, double weight, Parallel& parallel) const override;

 private:
  std::shared_ptr<const Kernel> kernel_;
  Vector mean_;  // of the landmarks: where the kernel's coordinates are centred
  Points points_;
  Matrix factor_;
};

}  // namespace ckce
