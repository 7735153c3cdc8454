// u(q_j), U = sum_j u(q_j) and q_j U for u(q) = q^(1/2), q^(3/2), q^2: functions of single
// probabilities, which landmarks cannot fill where there are many classes.
#pragma once

#include <limits>

#include "core/features/features.hpp"
#include "core/features/line_sections.hpp"

namespace ckce {

class Powers : public Features {
 public:
  explicit Powers(Index m) : m_(m) {}

  using Features::fill;
  Index d() const override { return 3 * (2 * m_ + 1); }
  Index m() const override { return m_; }
  double line_bandwidth() const override { return std::numeric_limits<double>::infinity(); }
  bool add_sections(LineSections& to) const override {
    to.add_features(*this);
    return true;
  }
  void fill(Index, const In& q, MatrixRef phi) const override {
    const auto p = q.array().max(0.0);
    phi.leftCols(m_) = p.sqrt();
    phi.middleCols(2 * m_ + 1, m_) = p * p.sqrt();
    phi.middleCols(4 * m_ + 2, m_) = p.square();
    for (Index at = 0; at < d(); at += 2 * m_ + 1) {
      phi.col(at + m_) = phi.middleCols(at, m_).rowwise().sum();
      phi.middleCols(at + m_ + 1, m_) = q.array().colwise() * phi.col(at + m_).array();
    }
  }

 private:
  Index m_;
};

}  // namespace ckce
