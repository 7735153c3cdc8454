#include "core/features/powers.hpp"

#include "core/features/line_sections.hpp"

namespace ckce {

bool Powers::add_sections(LineSections& to) const {
  to.add_features(*this);
  return true;
}

void Powers::fill(Index, const In& q, MatrixRef phi) const {
  const auto p = q.array().max(0.0);
  phi.leftCols(m_) = p.sqrt();
  phi.middleCols(2 * m_ + 1, m_) = p * p.sqrt();
  phi.middleCols(4 * m_ + 2, m_) = p.square();
  for (Index at = 0; at < d(); at += 2 * m_ + 1) {
    phi.col(at + m_) = phi.middleCols(at, m_).rowwise().sum();
    phi.middleCols(at + m_ + 1, m_) = q.array().colwise() * phi.col(at + m_).array();
  }
}

}  // namespace ckce
