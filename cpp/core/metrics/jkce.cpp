#include "core/metrics/jkce.hpp"

#include "core/features/block.hpp"
#include "core/kernels/gram_product.hpp"
#include "core/linalg/products.hpp"
#include "core/metrics/within_groups.hpp"
#include "core/stream/moments.hpp"

namespace ckce {
namespace {

// From rows_i = sum_j w_j h_ij and what is left out of them, h_ii or the sums within groups, to the
// sums over different copies or groups.
void finish_rows(const Samples& samples, const Vector& own, JkceSums& sums) {
  sums.rows -= own;
  sums.diagonal = sums.off_diagonal = 0.0;
  for (Index i = 0; i < samples.n(); ++i) {
    sums.diagonal += samples.weight(i) * own[i];
    sums.off_diagonal += samples.weight(i) * sums.rows[i];
  }
}

}  // namespace

JkceSums jkce_exact(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                    bool full, Parallel& parallel) {
  const Points points = kernel.points(samples.probs, parallel);
  const Gram gram{kernel, points};
  const Panels r = residual_panels(samples, points.q, label, [](double w) { return w; });
  const Vector k = kernel.diagonal(points, parallel);
  JkceSums sums;
  if (!full && !samples.groups) {
    for (Index i = 0; i < samples.n(); ++i) {
      const double w = samples.weight(i);
      const double h = k[i] * r.row(i).squaredNorm() / (w * w);
      sums.diagonal += w * h;
      sums.off_diagonal += (w * w - w) * h;
    }
    sums.off_diagonal += off_diagonal_form(gram, r, parallel);
    return sums;
  }
  Panels kr(r.n(), r.width());
  gram_product(gram, r, kr, parallel);
  sums.rows.resize(samples.n());
  Vector h_ii(samples.n());
  for (Index i = 0; i < samples.n(); ++i) {
    const double w = samples.weight(i);
    sums.rows[i] = kr.row(i).dot(r.row(i)) / w;
    h_ii[i] = k[i] * r.row(i).squaredNorm() / (w * w);
  }
  if (samples.groups) h_ii = within_groups(gram, samples, label, parallel);
  finish_rows(samples, h_ii, sums);
  return sums;
}

JkceSums jkce_gram(const In& gram, const Samples& samples, const LabelKernel& label, bool full) {
  Matrix q(samples.n(), samples.m());
  samples.probs.load(0, samples.n(), q);
  residuals_in_place(samples.labels, q);
  const Matrix r = label.apply(q);
  const Vector w = weights_of(samples, 0, samples.n());
  const Vector h = gram.diagonal().cwiseProduct(r.rowwise().squaredNorm());
  const Matrix wr = w.asDiagonal() * r;
  JkceSums sums;
  if (full || samples.groups) {
    sums.rows = r.cwiseProduct(product(gram, wr)).rowwise().sum();
    finish_rows(samples, samples.groups ? within_groups(gram, samples, r) : h, sums);
    return sums;
  }
  Matrix off = gram;
  off.diagonal().setZero();
  sums.off_diagonal = wr.cwiseProduct(product(off, wr)).sum() + h.dot(w.cwiseProduct(w) - w);
  sums.diagonal = h.dot(w);
  return sums;
}

JkceSums jkce_features(const Features& features, const Samples& samples, const LabelKernel& label,
                       bool full, Parallel& parallel) {
  parallel.span(0.0, full ? 0.8 : 1.0);
  Moments moments(features);
  moments.add(features, samples, &label, Precision::kFloat64, parallel);
  const Matrix s = label.apply(moments.phi_r());  // Phi'diag(w)R F (d, width)
  JkceSums sums;
  sums.off_diagonal = s.squaredNorm() - moments.diagonal;
  sums.diagonal = moments.diagonal;
  if (!full && !samples.groups) return sums;
  sums.rows.resize(samples.n());
  parallel.span(0.8, 1.0);
  parallel.each(count_pieces(samples.n(), kBlock), 3 * Block<double>::size(features), [&] {
    return [&, block = Block<double>(features)](Index task) mutable {
      block.load(samples, task * kBlock);
      block.turn_into_residuals();
      const auto phi = block.phi();
      const Matrix r = label.apply(block.q());
      sums.rows.segment(block.begin, block.rows) = product(phi, s).cwiseProduct(r).rowwise().sum();
      if (samples.groups) return;
      sums.rows.segment(block.begin, block.rows) -=
          phi.rowwise().squaredNorm().cwiseProduct(r.rowwise().squaredNorm());
    };
  });
  if (samples.groups) finish_rows(samples, within_groups(features, samples, label, parallel), sums);
  return sums;
}

Vector jkce_blocks(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                   Index block_size, Parallel& parallel) {
  const Index n_blocks = samples.n() / block_size;
  // As many whole blocks as fit a panel: they are the diagonal blocks of one tile of K.
  const Index per_task = std::max<Index>(1, kPanel / block_size);
  Vector values(n_blocks);
  parallel.each(count_pieces(n_blocks, per_task), 3 * (block_size + kPanel) * samples.m(), [&] {
    return [&, tile = Matrix(kPanel, kPanel)](Index task) mutable {
      const Index first = task * per_task;
      const Index blocks = std::min(per_task, n_blocks - first);
      Samples part = samples.part(first * block_size, blocks * block_size);
      part.weights = nullptr;
      Parallel alone;
      const Points points = kernel.points(part.probs, alone);
      const Panels r = residual_panels(part, points.q, label, [](double w) { return w; });
      const double pairs = static_cast<double>(block_size) * static_cast<double>(block_size - 1);
      if (block_size > kPanel) {
        values[first] = off_diagonal_form({kernel, points}, r, alone) / pairs;
        return;
      }
      kernel.full_tile(points, 0, points, 0, tile);
      tile.diagonal().setZero();
      for (Index b = 0; b < blocks; ++b) {
        const Index at = b * block_size;
        const Matrix rows = r.panel(0).middleRows(at, block_size);
        const Matrix gram = tile.block(at, at, block_size, block_size);
        values[first + b] = rows.cwiseProduct(product(gram, rows)).sum() / pairs;
      }
    };
  });
  return values;
}

}  // namespace ckce
