#include "core/features/joined.hpp"

#include <algorithm>
#include <limits>

namespace ckce {

Index Joined::d() const {
  Index sum = 0;
  for (const auto& part : parts_) sum += part->d();
  return sum;
}

double Joined::line_bandwidth() const {
  double finest = std::numeric_limits<double>::infinity();
  for (const auto& part : parts_) finest = std::min(finest, part->line_bandwidth());
  return finest;
}

bool Joined::add_sections(LineSections& to) const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [&](const auto& part) { return part->add_sections(to); });
}

void Joined::fill(Index begin, const In& q, MatrixRef phi) const {
  Index at = 0;
  for (const auto& part : parts_) {
    part->fill(begin, q, phi.middleCols(at, part->d()));
    at += part->d();
  }
}

}  // namespace ckce
