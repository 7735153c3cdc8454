// phi(q) = q: the linear kernel's exact features, the first part of the paper's phi-hat.
#pragma once

#include "core/features/features.hpp"

namespace ckce {

class LinearFeatures : public Features {
 public:
  using Features::fill;
  explicit LinearFeatures(Index m) : m_(m) {}
  Index d() const override { return m_; }
  Index m() const override { return m_; }
  bool starts_with_q() const override { return true; }
  void fill(Index, const In& q, MatrixRef phi) const override;
  void pull_back(const In&, const In&, const In& phi_bar, MatrixRef q_bar) const override;

 private:
  Index m_;
};

}  // namespace ckce
