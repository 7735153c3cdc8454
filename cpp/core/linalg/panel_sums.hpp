// Sums over panels, stripe by stripe in order: the same bits for any number of threads.
#pragma once

#include <algorithm>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

// total += the sum over `count` panels of what add(panel, sum) adds, `stripe` of them in a task.
template <class Add>
void sum_over_panels(Index count, Matrix& total, Parallel& parallel, Add add, Index stripe) {
  parallel.each(count_pieces(count, stripe), [&] {
    return [&](Index task) {
      Matrix sum = Matrix::Zero(total.rows(), total.cols());
      for (Index i = task * stripe; i < std::min((task + 1) * stripe, count); ++i) add(i, sum);
      parallel.in_turn(task, [&] { total += sum; });
    };
  });
}

template <class Add>
void sum_over_panels(Index count, Matrix& total, Parallel& parallel, Add add) {
  sum_over_panels(count, total, parallel, add, stripe_of(count));
}

// A'B (columns of a, columns of b)
inline Matrix panel_products(const Panels& a, const Panels& b, Parallel& parallel) {
  Matrix total = Matrix::Zero(a.width(), b.width());
  sum_over_panels(a.count(), total, parallel,
                  [&](Index i, Matrix& sum) { add_product_tn(sum, 1.0, a.panel(i), b.panel(i)); });
  return total;
}

}  // namespace ckce
