#include "core/metrics/within_groups.hpp"

#include <algorithm>
#include <vector>

#include "core/features/block.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// Groups first, first + 1, ..., last - 1, whose right-hand sides are solved together. A group of at
// most as many rows as R has columns is solved for its rows, a larger one for its sums: no more
// columns than rows.
class Batch {
 public:
  Batch(const Groups& groups, Index first, Index last, Index width)
      : groups_(groups), first_(first), last_(last), width_(width) {}

  Index rows() const { return groups_.begin(last_) - groups_.begin(first_); }
  Index columns() const {
    Index sum = 0;
    for (Index g = first_; g < last_; ++g) sum += std::min(groups_.size(g), width_);
    return sum;
  }
  // visit(place of its first row in the batch, its rows, its first column, summed) for each group
  template <class Visit>
  void each(Visit visit) const {
    Index column = 0;
    for (Index g = first_; g < last_; ++g) {
      const Index size = groups_.size(g);
      visit(groups_.begin(g) - groups_.begin(first_), size, column, size > width_);
      column += std::min(size, width_);
    }
  }

 private:
  const Groups& groups_;
  Index first_, last_, width_;
};

// sum over the groups of Tr (Z_g R_g)'K (Z_g R_g), or Tr Z_g'K Z_g where Z_g is summed already.
double sum_of_forms(const Batch& batch, const In& z, const In& k_z, const In& r) {
  double sum = 0.0;
  batch.each([&](Index at, Index size, Index column, bool summed) {
    if (summed) {
      sum += z.middleCols(column, r.cols()).cwiseProduct(k_z.middleCols(column, r.cols())).sum();
      return;
    }
    const auto r_g = r.middleRows(at, size);
    if (size == 1) {
      sum += z.col(column).dot(k_z.col(column)) * r_g.squaredNorm();
      return;
    }
    Matrix inner = Matrix::Zero(size, size);
    add_product_tn(inner, 1.0, z.middleCols(column, size), k_z.middleCols(column, size));
    sum += product(inner, r_g).cwiseProduct(r_g).sum();
  });
  return sum;
}

// Phi, R F and w of rows from anywhere
struct FeatureRows {
  FeatureRows(const Features& features, const Samples& samples, const LabelKernel& label,
              std::vector<Index> which)
      : rows(samples, std::move(which)), phi(rows.count(), features.d()) {
    features.fill_rows(rows.rows, rows.q, phi);
    rows.turn_into_residuals();
    r = label.apply(rows.q);
  }

  GatheredRows rows;
  Matrix phi, r;
};

// visit(rows) for the pieces of a group too large for a block
template <class Visit>
void each_piece_of(const Groups& groups, Index g, Visit visit) {
  for (Index at = 0; at < groups.size(g); at += kBlock)
    visit(groups.rows(groups.begin(g) + at, std::min(kBlock, groups.size(g) - at)));
}

// Phi_g'diag(w)R_g F (d, width), in pieces
Matrix sums_of_large_group(const Features& features, const Samples& samples,
                           const LabelKernel& label, Index g) {
  Matrix sum;
  each_piece_of(*samples.groups, g, [&](std::vector<Index> which) {
    const FeatureRows piece(features, samples, label, std::move(which));
    if (sum.size() == 0) sum = Matrix::Zero(piece.phi.cols(), piece.r.cols());
    add_product_tn(sum, 1.0, piece.phi, piece.rows.weights.asDiagonal() * piece.r);
  });
  return sum;
}

// The right-hand sides of a batch, Phi_g'diag(w) or Phi_g'diag(w)R_g F, solved.
double debias_of_batch(const Features& features, const Samples& samples, const LabelKernel& label,
                       const RidgeSolver& solver, Index first, Index last) {
  const Groups& groups = *samples.groups;
  if (groups.size(first) > kBlock) {
    Matrix z = sums_of_large_group(features, samples, label, first);
    solver.solve(z);
    return z.squaredNorm();
  }
  const Index begin = groups.begin(first);
  const FeatureRows all(features, samples, label, groups.rows(begin, groups.begin(last) - begin));
  const Matrix w_phi = all.phi.transpose() * all.rows.weights.asDiagonal();
  const Batch batch(groups, first, last, all.r.cols());
  Matrix z = Matrix::Zero(features.d(), batch.columns());
  batch.each([&](Index at, Index size, Index column, bool summed) {
    if (summed)
      add_product(z.middleCols(column, all.r.cols()), 1.0, w_phi.middleCols(at, size),
                  all.r.middleRows(at, size));
    else
      z.middleCols(column, size) = w_phi.middleCols(at, size);
  });
  solver.solve(z);
  return sum_of_forms(batch, z, z, all.r);
}

// sum_j w_j k_ij <r_i, r_j> of the rows of a group with this block of K
Vector rows_of_block(const In& gram, const In& r, const In& w_r) {
  return product(gram, w_r).cwiseProduct(r).rowwise().sum();
}

}  // namespace

double debias_by_group(const Features& features, const Samples& samples, const LabelKernel& label,
                       const RidgeSolver& solver, Parallel& parallel) {
  const std::vector<Index> firsts = samples.groups->batches(kBlock);
  double total = 0.0;
  parallel.each(static_cast<Index>(firsts.size()) - 1, 3 * Block<double>::size(features), [&] {
    return [&](Index task) {
      const double sum = debias_of_batch(features, samples, label, solver, firsts[as_size(task)],
                                         firsts[as_size(task) + 1]);
      parallel.in_turn(task, [&] { total += sum; });
    };
  });
  return total;
}

double debias_by_group(const Matrix& gram, const Groups& groups, const Matrix& r,
                       const RidgeSolver& solver, Parallel& parallel) {
  const std::vector<Index> firsts = groups.batches(kSolveColumns);
  double total = 0.0;
  parallel.each(static_cast<Index>(firsts.size()) - 1, [&] {
    return [&](Index task) {
      const Index first = firsts[as_size(task)];
      const Batch batch(groups, first, firsts[as_size(task) + 1], r.cols());
      const std::vector<Index> rows = groups.rows(groups.begin(first), batch.rows());
      Matrix r_batch(batch.rows(), r.cols());
      for (Index k = 0; k < batch.rows(); ++k) r_batch.row(k) = r.row(rows[as_size(k)]);
      Matrix z = Matrix::Zero(gram.rows(), batch.columns());
      batch.each([&](Index at, Index size, Index column, bool summed) {
        for (Index k = 0; k < size; ++k) {
          const Index row = rows[as_size(at + k)];
          if (summed)
            z.row(row).segment(column, r.cols()) = r_batch.row(at + k);
          else
            z(row, column + k) = 1.0;
        }
      });
      solver.solve(z);
      const double sum = sum_of_forms(batch, z, product(gram, z), r_batch);
      parallel.in_turn(task, [&] { total += sum; });
    };
  });
  return total;
}

Vector within_groups(const Gram& gram, const Samples& samples, const LabelKernel& label,
                     Parallel& parallel) {
  const Groups& groups = *samples.groups;
  const Panels w_r = residual_panels(samples, gram.points.q, label, [](double w) { return w; });
  Vector out(samples.n());
  const auto put = [&](const std::vector<Index>& rows, Index at, const Vector& sums) {
    for (Index k = 0; k < sums.size(); ++k) {
      const Index row = rows[as_size(at + k)];
      out[row] = sums[k] / samples.weight(row);
    }
  };
  const std::vector<Index> firsts = groups.batches(kPanel);
  parallel.each(static_cast<Index>(firsts.size()) - 1, [&] {
    return [&, tile = Matrix(kPanel, kPanel)](Index task) mutable {
      const Index first = firsts[as_size(task)];
      const Index last = firsts[as_size(task) + 1];
      const Index begin = groups.begin(first);
      if (groups.size(first) > kPanel) return;
      const std::vector<Index> rows = groups.rows(begin, groups.begin(last) - begin);
      const Points points = gram.points.subset(rows);
      gram.kernel.full_tile(points, 0, points, 0, tile);
      for (Index g = first; g < last; ++g) {
        const Index at = groups.begin(g) - begin;
        const Index size = groups.size(g);
        Matrix r_g(size, w_r.width());
        for (Index k = 0; k < size; ++k) r_g.row(k) = w_r.row(rows[as_size(at + k)]);
        put(rows, at, rows_of_block(tile.block(at, at, size, size), r_g, r_g));
      }
    };
  });
  for (Index g = 0; g < groups.count(); ++g) {  // all threads work on a large one
    if (groups.size(g) <= kPanel) continue;
    const std::vector<Index> rows = groups.rows(g);
    const Points points = gram.points.subset(rows);
    Panels r_g(groups.size(g), w_r.width());
    Panels k_r(groups.size(g), w_r.width());
    for (Index k = 0; k < groups.size(g); ++k) r_g.row(k) = w_r.row(rows[as_size(k)]);
    gram_product({gram.kernel, points}, r_g, k_r, parallel);
    Vector sums(groups.size(g));
    for (Index k = 0; k < sums.size(); ++k) sums[k] = k_r.row(k).dot(r_g.row(k));
    put(rows, 0, sums);
  }
  return out;
}

Vector within_groups(const In& gram, const Samples& samples, const Matrix& r) {
  const Groups& groups = *samples.groups;
  Vector out(samples.n());
  for (Index g = 0; g < groups.count(); ++g) {
    const std::vector<Index> rows = groups.rows(g);
    const Index size = groups.size(g);
    Matrix block(size, size), r_g(size, r.cols());
    Vector w(size);
    for (Index k = 0; k < size; ++k) {
      const Index row = rows[as_size(k)];
      r_g.row(k) = r.row(row);
      w[k] = samples.weight(row);
      for (Index j = 0; j < size; ++j) block(j, k) = gram(rows[as_size(j)], row);
    }
    const Vector sums = rows_of_block(block, r_g, w.asDiagonal() * r_g);
    for (Index k = 0; k < size; ++k) out[rows[as_size(k)]] = sums[k];
  }
  return out;
}

Vector within_groups(const Features& features, const Samples& samples, const LabelKernel& label,
                     Parallel& parallel) {
  const Groups& groups = *samples.groups;
  const std::vector<Index> firsts = groups.batches(kBlock);
  Vector out(samples.n());
  // phi_i S_g r_i' with S_g = Phi_g'diag(w)R_g F
  const auto put = [&](const FeatureRows& all, Index at, Index size, const Matrix& s) {
    const auto r_g = all.r.middleRows(at, size);
    const Vector sums = product(all.phi.middleRows(at, size), s).cwiseProduct(r_g).rowwise().sum();
    for (Index k = 0; k < size; ++k) out[all.rows.rows[as_size(at + k)]] = sums[k];
  };
  parallel.each(static_cast<Index>(firsts.size()) - 1, 3 * Block<double>::size(features), [&] {
    return [&](Index task) {
      const Index first = firsts[as_size(task)];
      const Index last = firsts[as_size(task) + 1];
      const Index begin = groups.begin(first);
      if (groups.size(first) > kBlock) {
        const Matrix s = sums_of_large_group(features, samples, label, first);
        each_piece_of(groups, first, [&](std::vector<Index> which) {
          const FeatureRows piece(features, samples, label, std::move(which));
          put(piece, 0, piece.phi.rows(), s);
        });
        return;
      }
      const FeatureRows all(features, samples, label,
                            groups.rows(begin, groups.begin(last) - begin));
      const Matrix w_r = all.rows.weights.asDiagonal() * all.r;
      for (Index g = first; g < last; ++g) {
        const Index at = groups.begin(g) - begin;
        const Index size = groups.size(g);
        Matrix s = Matrix::Zero(features.d(), all.r.cols());
        add_product_tn(s, 1.0, all.phi.middleRows(at, size), w_r.middleRows(at, size));
        put(all, at, size, s);
      }
    };
  });
  return out;
}

}  // namespace ckce
