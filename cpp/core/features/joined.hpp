// Several feature maps side by side: phi(q) = [phi_1(q) | phi_2(q) | ...].
#pragma once

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
  Index d() const override;
  Index m() const override { return parts_.front()->m(); }
  double line_bandwidth() const override;
  bool add_sections(LineSections& to) const override;
  void fill(Index begin, const In& q, MatrixRef phi) const override;

 private:
  std::vector<std::shared_ptr<const Features>> parts_;
};

}  // namespace ckce
