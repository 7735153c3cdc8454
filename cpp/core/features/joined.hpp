// Several feature maps side by side: phi(q) = [phi_1(q) | phi_2(q) | ...].
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/features/features.hpp"

namespace ckce {

class Joined : public Features {
 public:
  // At least one, all of the same classes.
  explicit Joined(std::vector<std::shared_ptr<const Features>> parts) : parts_(std::move(parts)) {}

  using Features::fill;
  Index d() const override {
    Index sum = 0;
    for (const auto& part : parts_) sum += part->d();
    return sum;
  }
  Index m() const override { return parts_.front()->m(); }
  double line_bandwidth() const override {
    double finest = std::numeric_limits<double>::infinity();
    for (const auto& part : parts_) finest = std::min(finest, part->line_bandwidth());
    return finest;
  }
  bool add_sections(LineSections& to) const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](const auto& part) { return part->add_sections(to); });
  }
  void fill(Index begin, const In& q, MatrixRef phi) const override {
    Index at = 0;
    for (const auto& part : parts_) {
      part->fill(begin, q, phi.middleCols(at, part->d()));
      at += part->d();
    }
  }

 private:
  std::vector<std::shared_ptr<const Features>> parts_;
};

}  // namespace ckce
