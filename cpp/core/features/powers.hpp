// u(q_j), U = sum_j u(q_j) and q_j U for u(q) = q^(1/2), q^(3/2), q^2: functions of single
// probabilities, which landmarks cannot fill where there are many classes.
#pragma once

#include <limits>

#include "core/features/features.hpp"

namespace ckce {

class Powers : public Features {
 public:
  explicit Powers(Index m) : m_(m) {}

  using Features::fill;
  Index d() const override { return 3 * (2 * m_ + 1); }
  Index m() const override { return m_; }
  double line_bandwidth() const override { return std::numeric_limits<double>::infinity(); }
  bool add_sections(LineSections& to) const override;
  void fill(Index, const In& q, MatrixRef phi) const override;

 private:
  Index m_;
};

}  // namespace ckce
