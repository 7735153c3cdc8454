#include "core/features/line_sections.hpp"

#include <algorithm>
#include <numeric>

#include "core/kernels/distances.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

constexpr double kMostAmplified = 1e3;  // squared norm of a row of L^-1
constexpr double kSeen = 6.7;           // bandwidths: exp(-6.7^2) is 3e-20

}  // namespace

LineSections::LineSections(const Features& features) : features_(features) {
  sparse_ = features.m() == 2 && features.add_sections(*this);
}

void LineSections::add_features(const Features& map) {
  whole_.emplace_back(&map, count_);
  blocks_.push_back({d_, count_, Matrix::Identity(map.d(), map.d())});
  d_ += map.d();
  count_ += map.d();
}

bool LineSections::add_landmarks(const Matrix& points, double bandwidth, const Matrix& factor,
                                 bool linear) {
  const Index r = points.rows();
  Matrix inverse = Matrix::Identity(r, r);
  solve_lower(factor, inverse);
  if (!(inverse.rowwise().squaredNorm().maxCoeff() <= kMostAmplified)) return false;
  if (linear) {
    lines_.push_back(count_);
    blocks_.push_back({d_, count_, product(inverse, points)});
    count_ += 2;
  }
  std::vector<Index> order(as_size(r));
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return points(a, 1) < points(b, 1); });
  bumps_.push_back({count_, bandwidth, points(order, Eigen::placeholders::all)});
  blocks_.push_back({d_, count_, inverse(Eigen::placeholders::all, order)});
  d_ += r;
  count_ += r;
  return true;
}

void LineSections::Values::add_product(Matrix& out, const Matrix& b) const {
  out(columns, Eigen::placeholders::all) += product_tn(s, b);
}

void LineSections::Values::add_form(Matrix& out, const Vector& weights) const {
  Matrix form = Matrix::Zero(s.cols(), s.cols());
  add_lower_product_tn(form, s, weights.asDiagonal() * s);
  for (Index j = 0; j < s.cols(); ++j)
    for (Index i = j; i < s.cols(); ++i) {
      const auto [column, row] = std::minmax(columns[as_size(i)], columns[as_size(j)]);
      out(row, column) += form(i, j);
    }
}

Matrix LineSections::Values::times(const Matrix& f) const { return product(s, rows_of(f)); }

void LineSections::fill(const In& q, Values& to) const {
  to.columns.clear();
  const auto reserve = [&](Index first, Index columns) {
    const auto at = static_cast<Index>(to.columns.size());
    for (Index j = 0; j < columns; ++j) to.columns.push_back(first + j);
    return at;
  };
  if (!sparse_) {
    reserve(0, features_.d());
    to.s.resize(q.rows(), features_.d());
    features_.fill(0, q, to.s);
    return;
  }
  to.s.resize(q.rows(), count_);
  for (const auto& [map, first] : whole_) {
    const Index at = reserve(first, map->d());
    map->fill(0, q, to.s.middleCols(at, map->d()));
  }
  for (const Index first : lines_) to.s.middleCols(reserve(first, 2), 2) = q;
  const double least = q.col(1).minCoeff();
  const double most = q.col(1).maxCoeff();
  for (const Bumps& bumps : bumps_) {
    const double* c = bumps.centres.col(1).data();
    const double* end = c + bumps.centres.rows();
    const Index begin = std::lower_bound(c, end, least - kSeen * bumps.bandwidth) - c;
    const Index seen = std::upper_bound(c, end, most + kSeen * bumps.bandwidth) - c - begin;
    if (seen <= 0) continue;
    Index at = reserve(bumps.first + begin, seen);
    const double scale = -0.5 / bumps.bandwidth / bumps.bandwidth;
    for (Index j = begin; j < begin + seen; ++j, ++at) {
      double out[kPanel] = {};
      const double c0 = bumps.centres(j, 0), c1 = bumps.centres(j, 1);
      const double *q0 = q.col(0).data(), *q1 = q.col(1).data();
      for (Index i = 0; i < q.rows(); ++i) {
        const double x0 = q0[i] - c0, x1 = q1[i] - c1;
        out[i] = std::max(scale * (x0 * x0 + x1 * x1), kLeastExponent);
      }
      exp_of_negative(out);
      std::copy_n(out, q.rows(), to.s.col(at).data());
    }
  }
  to.s.conservativeResize(Eigen::NoChange, static_cast<Index>(to.columns.size()));
}

Matrix LineSections::from_phi(const Matrix& f) const {
  if (!sparse_) return f;
  Matrix out = Matrix::Zero(count_, f.cols());
  for (const Block& block : blocks_)
    add_product_tn(out.middleRows(block.section, block.t.cols()), 1.0, block.t,
                   f.middleRows(block.feature, block.t.rows()));
  return out;
}

Matrix LineSections::to_phi(const Matrix& z) const {
  if (!sparse_) return z;
  Matrix out = Matrix::Zero(d_, z.cols());
  for (const Block& block : blocks_)
    add_product(out.middleRows(block.feature, block.t.rows()), 1.0, block.t,
                z.middleRows(block.section, block.t.cols()));
  return out;
}

Matrix LineSections::form_to_phi(const Matrix& lower) const {
  if (!sparse_) return lower;
  const Matrix whole = lower.selfadjointView<Eigen::Lower>();
  return to_phi(to_phi(whole).transpose());
}

}  // namespace ckce
