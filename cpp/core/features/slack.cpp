#include "core/features/slack.hpp"

#include <algorithm>

#include "core/linalg/products.hpp"

namespace ckce {

double slack_of(const In& l, const Matrix& phi_phi, double weight, double entry_error,
                Parallel& parallel) {
  const Index d = l.rows();
  double coefficients = 0.0;
  parallel.each(count_pieces(d, kSolveColumns), [&] {
    return [&](Index task) {
      const Index begin = task * kSolveColumns;
      const Index below = d - begin;  // L^-1 is zero above its diagonal
      Matrix inverse = Matrix::Identity(below, std::min(kSolveColumns, below));
      solve_lower(l.bottomRightCorner(below, below), inverse);
      Matrix image = Matrix::Zero(below, inverse.cols());
      add_symmetric_product(image, phi_phi.bottomRightCorner(below, below), inverse);
      const double sum = inverse.cwiseProduct(image).sum();
      parallel.in_turn(task, [&] { coefficients += sum; });
    };
  });
  constexpr double kLargest = 2.0;  // k(q, q)
  const double terms = static_cast<double>(d);
  const double delta = (2.0 * terms + 8.0) * kUnit * kLargest + entry_error;
  return 2.0 * terms * delta * (weight + std::max(coefficients, 0.0));
}

}  // namespace ckce
