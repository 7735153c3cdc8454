#include "core/binary/cell_kernel.hpp"

#include <utility>

#include "core/base/memory.hpp"
#include "core/linalg/products.hpp"

namespace ckce {

CellKernel::CellKernel(const CellSums& sums, bool linear, Parallel& parallel)
    : grid_(sums.grid()),
      linear_(linear),
      slots_(sums.order()),
      coefficients_(grid_.coefficients(parallel)),
      coefficients_up_(coefficients_.rows(), coefficients_.cols()) {
  for (Index row = 0; row < coefficients_.rows(); row += nodes())
    coefficients_up_.middleRows(row, nodes()) = coefficients_.middleRows(row, nodes()).transpose();
  cells_.reserve(slots_.size());
  for (const Index slot : slots_) cells_.push_back(sums.cell(slot).cell);
  ends_.resize(cells_.size());
  std::size_t end = 0;
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    while (end < cells_.size() && cells_[end] - cells_[c] <= kReach) ++end;
    ends_[c] = static_cast<Index>(end);
  }
}

Eigen::Matrix2d CellKernel::line(Index c) const {
  const double centre = grid_.centre(cell(c));
  const double half = 0.5 * grid_.width;
  Eigen::Matrix2d line;
  line << centre, 1.0 - centre, half, -half;
  return line;
}

Matrix CellKernel::gaussian(const Matrix& z, Parallel& parallel) const {
  constexpr Index kStripe = 64;
  const Index k = nodes();
  Matrix out = unset<Matrix>(k, count());
  parallel.each_striped(count(), kStripe, [&](Index c) {
    auto to = out.col(c);
    to.setZero();
    for (Index d = c; d < end(c); ++d) {  // above: M_cd is the transpose of M_dc
      const auto block = coefficients_.middleRows((cell(d) - cell(c)) * k, k);
      for (Index j = 0; j < k; ++j) to[j] += block.col(j).dot(z.col(d));
    }
    for (Index d = c - 1; d >= 0 && end(d) > c; --d) {
      const auto block = coefficients_.middleRows((cell(c) - cell(d)) * k, k);
      for (Index j = 0; j < k; ++j) to += z(j, d) * block.col(j);
    }
  });
  return out;
}

Eigen::Vector2d CellKernel::line_sums(const Matrix& z) const {
  Eigen::Vector2d sums = Eigen::Vector2d::Zero();
  for (Index c = 0; c < count(); ++c) sums += line(c).transpose() * z.col(c).head<2>();
  return sums;
}

Matrix CellKernel::apply(const Matrix& z, Parallel& parallel) const {
  Matrix out = gaussian(z, parallel);
  if (!linear_) return out;
  const Eigen::Vector2d sums = line_sums(z);
  for (Index c = 0; c < count(); ++c) out.col(c).head<2>() += line(c) * sums;
  return out;
}

double CellKernel::forms(const Matrix& z) const {
  const Index k = nodes();
  double sum = 0.0;
  for (Index c = 0; c < count(); ++c) {
    const auto place = [&](Index d) { return static_cast<Index>(cell(d) - cell(c)) * k; };
    const Index rows = place(end(c) - 1) + k;
    const Matrix m_z = product(coefficients_.topRows(rows), z.middleRows(c * k, k));  // M_dc z_c
    for (Index d = c; d < end(c); ++d)
      sum += (d > c ? 2.0 : 1.0) *
             z.middleRows(d * k, k).cwiseProduct(m_z.middleRows(place(d), k)).sum();
  }
  if (!linear_) return sum;
  Matrix sums = Matrix::Zero(2, z.cols());  // N'z
  for (Index c = 0; c < count(); ++c) sums += line(c).transpose() * z.middleRows(c * k, 2);
  return sum + sums.squaredNorm();
}

CellFunctions::CellFunctions(const std::vector<std::int64_t>& cells, std::vector<Matrix> series)
    : series_(std::move(series)) {
  index_.reserve(cells.size());
  for (const std::int64_t cell : cells) index_.emplace(cell, static_cast<Index>(index_.size()));
}

void CellFunctions::evaluate(const CellRows& rows, Matrix& out) const {
  constexpr Index kWide = 8;
  using Wide = Eigen::Array<double, kWide, 1>;
  rows.each_cell([&](std::int64_t cell, Index first, Index last) {
    const auto found = index_.find(cell);
    for (Index i = first; i < last; i += kWide) {
      const Index count = std::min(kWide, last - i);
      Wide t = Wide::Zero();
      for (Index j = 0; j < count; ++j) t[j] = rows.t(rows.row(i + j));
      const Wide twice = 2.0 * t;
      for (std::size_t f = 0; f < series_.size(); ++f) {
        Wide b1 = Wide::Zero(), b2 = Wide::Zero();
        if (found != index_.end()) {
          const auto c = series_[f].col(found->second);
          for (Index j = c.size() - 1; j > 0; --j) {  // Clenshaw's recursion
            const Wide b0 = twice * b1 + (c[j] - b2);
            b2 = b1;
            b1 = b0;
          }
          b1 = t * b1 + (c[0] - b2);
        }
        for (Index j = 0; j < count; ++j) out(rows.row(i + j), static_cast<Index>(f)) = b1[j];
      }
    }
  });
}

}  // namespace ckce
