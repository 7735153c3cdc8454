#include "core/metrics/smooth_ece.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/panels.hpp"
#include "core/base/row_panel.hpp"

namespace ckce {
namespace {

constexpr double kSmallestBandwidth = 0.001;
constexpr int kHalvings = 10;
constexpr double kTail = 12.0;     // bandwidths, beyond which a Gaussian is below 1e-31
constexpr double kDensity = 1e-4;  // that relplot adds to d_s, in rows

// The confidences and what they miss by.
struct Gaps1d {
  Vector p;    // (n,)
  Vector gap;  // (n,), w_i (p_i - h_i)
};

Gaps1d look(const Samples& samples, Parallel& parallel) {
  Gaps1d gaps{Vector(samples.n()), Vector(samples.n())};
  const Index n_panels = Panels::count(samples.n());
  parallel.each(count_pieces(n_panels, kScoredPanels), [&] {
    return [&, panel = RowPanel(samples.m())](Index task) mutable {
      for (Index k = task * kScoredPanels; k < std::min((task + 1) * kScoredPanels, n_panels);
           ++k) {
        const Index begin = k * kPanel;
        const Index rows = std::min(kPanel, samples.n() - begin);
        panel.look(samples.probs, begin, rows);
        for (Index i = 0; i < rows; ++i) {
          const double p = still_probability(panel.confidence[i]);
          const bool hit = panel.predicted[i] == static_cast<double>(samples.labels[begin + i]);
          gaps.p[begin + i] = p;
          gaps.gap[begin + i] = samples.weight(begin + i) * (p - (hit ? 1.0 : 0.0));
        }
      }
    };
  });
  return gaps;
}

// Where the points 0, 1/(size - 1), ..., 1 are that p lies between.
struct Place {
  Place(double p, Index size) {
    const double at = p * static_cast<double>(size - 1);
    cell = std::min(static_cast<Index>(at), size - 2);
    right = at - static_cast<double>(cell);
  }
  Index cell;
  double right;  // weight of the right one
};

// Column 0: the gaps, column 1: the weights, each row shared by its two neighbours. (size, 2)
Matrix deposit(const Samples& samples, const Gaps1d& gaps, Index size, Parallel& parallel) {
  Matrix grid = Matrix::Zero(size, 2);
  const Index n = samples.n();
  const Index piece = std::max(kCheckedRows, count_pieces(n, kBinTables));
  parallel.each(count_pieces(n, piece), [&] {
    return [&, mine = Matrix(size, 2)](Index task) mutable {
      mine.setZero();
      double* gap = mine.col(0).data();
      double* weight = mine.col(1).data();
      for (Index i = task * piece; i < std::min(n, (task + 1) * piece); ++i) {
        const Place place(gaps.p[i], size);
        const double w = samples.weight(i);
        const double moved = place.right * gaps.gap[i];
        gap[place.cell] += gaps.gap[i] - moved;
        gap[place.cell + 1] += moved;
        weight[place.cell] += w - place.right * w;
        weight[place.cell + 1] += place.right * w;
      }
      parallel.in_turn(task, [&] { grid += mine; });
    };
  });
  return grid;
}

// Convolution with the Gaussian, whose tails beyond 1/2 are cut. The grid is continued by
// reflection; the points at 0 and 1 are not doubled. With an even size the middle of the kernel
// lies between two points, and what comes out is for points half a cell further right. (size, 2)
Matrix smooth(const Matrix& grid, double bandwidth) {
  const Index size = grid.rows();
  const double step = 1.0 / static_cast<double>(size - 1);
  const auto reach = static_cast<Index>(std::ceil(kTail * bandwidth / step));
  const Index first = std::max<Index>(0, (size - 1) / 2 - reach);
  const Index taps = size - 2 * first;
  Vector kernel(taps);
  for (Index j = 0; j < taps; ++j) {
    const double z = (static_cast<double>(first + j) * step - 0.5) / bandwidth;
    kernel[j] =
        std::exp(-0.5 * z * z) / (static_cast<double>(std::sqrt(2.0 * EIGEN_PI)) * bandwidth);
  }
  Matrix wide(3 * size - 2, 2);
  wide.topRows(size - 1) = grid.bottomRows(size - 1).colwise().reverse();
  wide.middleRows(size - 1, size) = grid;
  wide.bottomRows(size - 1) = grid.topRows(size - 1).colwise().reverse();
  Matrix out(size, 2);
  for (Index k = 0; k < size; ++k)
    out.row(k) = kernel.transpose() * wide.middleRows(size / 2 + k + first, taps);
  return out;
}

double integrate(const Matrix& smoothed, double bandwidth) {
  const Index points = std::max<Index>(200, std::lrint(10.0 / bandwidth));
  double error = 0.0;
  double density = 0.0;
  for (Index k = 0; k < points; ++k) {
    const Place place(static_cast<double>(k) / static_cast<double>(points - 1), smoothed.rows());
    const Eigen::RowVector2d at =
        smoothed.row(place.cell) * (1.0 - place.right) + smoothed.row(place.cell + 1) * place.right;
    error += std::abs(at[0]);
    density += at[1] + kDensity;
  }
  return error / density;
}

}  // namespace

SmoothEce smooth_ece(const Samples& samples, Parallel& parallel) {
  parallel.span(0.0, 0.5);
  const Gaps1d gaps = look(samples, parallel);
  parallel.span(0.5, 1.0);
  double at_ends = 0.0;
  for (Index i = 0; i < samples.n(); ++i)
    if (gaps.p[i] == 0.0 || gaps.p[i] == 1.0) at_ends += samples.weight(i);
  at_ends /= total_weight(samples);
  Matrix grid;
  const auto at = [&](double bandwidth) {
    const Index size = std::max<Index>(2000, std::lrint(20.0 / bandwidth)) / 2 + 1;
    if (grid.rows() != size) grid = deposit(samples, gaps, size, parallel);
    return SmoothEce{integrate(smooth(grid, bandwidth), bandwidth), bandwidth, at_ends};
  };
  SmoothEce found = at(1.0);
  double low = 0.0;
  for (int k = 0; k < kHalvings; ++k) {
    const double middle = 0.5 * (low + found.bandwidth);
    if (middle < kSmallestBandwidth) {
      low = middle;
      continue;
    }
    const SmoothEce tried = at(middle);
    if (middle < tried.value)
      low = middle;
    else
      found = tried;
  }
  return found;
}

}  // namespace ckce
