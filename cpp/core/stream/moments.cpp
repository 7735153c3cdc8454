#include "core/stream/moments.hpp"

#include <type_traits>

#include "core/linalg/lower_triangle.hpp"
#include "core/linalg/products.hpp"

namespace ckce {
namespace {

// sums(y_i, :) += phi_i. Four features at a time: a label is looked up once for all of them.
template <class Scalar>
void scatter_rows(const std::int64_t* labels, const Eigen::Ref<const Eigen::MatrixX<Scalar>>& phi,
                  Eigen::MatrixX<Scalar>& sums) {
  constexpr Index kFeatures = 4;
  const Index in_fours = phi.cols() / kFeatures * kFeatures;
  for (Index f = 0; f < in_fours; f += kFeatures) {
    const Scalar* from[kFeatures];
    Scalar* to[kFeatures];
    for (Index k = 0; k < kFeatures; ++k) {
      from[k] = phi.col(f + k).data();
      to[k] = sums.col(f + k).data();
    }
    for (Index i = 0; i < phi.rows(); ++i)
      for (Index k = 0; k < kFeatures; ++k) to[k][labels[i]] += from[k][i];
  }
  for (Index f = in_fours; f < phi.cols(); ++f)
    for (Index i = 0; i < phi.rows(); ++i) sums(labels[i], f) += phi(i, f);
}

}  // namespace

template <class Scalar>
PartialMoments<Scalar>::PartialMoments(Index d, Index m)
    : phi_phi(unset<Eigen::MatrixX<Scalar>>(d, d)),
      labels_phi(unset<Eigen::MatrixX<Scalar>>(m, d)) {}

template <class Scalar>
void PartialMoments<Scalar>::clear() {
  phi_phi.setZero();
  labels_phi.setZero();
}

template <class Scalar>
void PartialMoments<Scalar>::add(Block<Scalar>& block, bool scattered) {
  auto phi = block.phi();
  const auto root = block.weights.array().sqrt().template cast<Scalar>();
  if (block.weighted) phi.array().colwise() *= root;
  add_gram(phi_phi, phi);
  if (block.weighted) phi.array().colwise() *= root;
  if (scattered)
    scatter_rows<Scalar>(block.labels, phi, labels_phi);
  else
    add_product_tn(labels_phi, Scalar(1), block.q(), phi);
}

template struct PartialMoments<double>;
template struct PartialMoments<float>;

Moments::Moments(const Features& features)
    : Moments(features, features.starts_with_q() && features.m() >= kManyClasses) {}

Moments::Moments(const Features& features, bool scattered_)
    : scattered(scattered_),
      phi_phi(Matrix::Zero(features.d(), features.d())),
      labels_phi(Matrix::Zero(features.m(), features.d())) {}

template <class Scalar>
void Moments::add(const PartialMoments<Scalar>& part) {
  add_lower(phi_phi, part.phi_phi);
  labels_phi += part.labels_phi.template cast<double>();
}

template void Moments::add(const PartialMoments<double>& part);
template void Moments::add(const PartialMoments<float>& part);

void Moments::add(const Moments& other) {
  weight += other.weight;
  diagonal += other.diagonal;
  add_lower(phi_phi, other.phi_phi);
  labels_phi += other.labels_phi;
}

double diagonal_of(Block<double>& block, const Vector& norms) {
  return block.weights.dot(block.phi().rowwise().squaredNorm().cwiseProduct(norms));
}

template <class Scalar>
void Moments::add_in(const Features& features, const Samples& samples, const LabelKernel* label,
                     Parallel& parallel) {
  // Adding a block's sum costs d^2 memory traffic.
  const Index blocks_per_task = features.d() > kWideFeatures ? 2 : 1;
  const Index n_blocks = count_pieces(samples.n(), kBlock);
  const Index doubles = Block<Scalar>::size(features) + phi_phi.size() + labels_phi.size();
  parallel.each(count_pieces(n_blocks, blocks_per_task), doubles, [&] {
    return [&, block = Block<Scalar>(features),
            part = PartialMoments<Scalar>(features.d(), features.m())](Index task) mutable {
      double part_weight = 0.0;
      double part_diagonal = 0.0;
      part.clear();
      const Index last = std::min((task + 1) * blocks_per_task, n_blocks);
      for (Index b = task * blocks_per_task; b < last; ++b) {
        block.load(samples, b * kBlock);
        part_weight += block.weights.sum();
        if (label || !scattered) block.turn_into_residuals();
        if constexpr (std::is_same_v<Scalar, double>)
          if (label) part_diagonal += diagonal_of(block, label->norms(block.q()));
        part.add(block, scattered);
      }
      parallel.in_turn(task, [&] {
        weight += part_weight;
        diagonal += part_diagonal;
        add(part);
      });
    };
  });
}

void Moments::add(const Features& features, const Samples& samples, const LabelKernel* label,
                  Precision precision, Parallel& parallel) {
  if (precision == Precision::kMixed)
    add_in<float>(features, samples, label, parallel);
  else
    add_in<double>(features, samples, label, parallel);
}

Matrix Moments::phi_r() const {
  Matrix s = labels_phi.transpose();
  if (!scattered) return s;
  const Index m = s.cols();
  s -= phi_phi.leftCols(m).triangularView<Eigen::Lower>().toDenseMatrix();
  s.topRows(m) -= phi_phi.topLeftCorner(m, m)
                      .triangularView<Eigen::StrictlyLower>()
                      .toDenseMatrix()
                      .transpose();
  return s;
}

}  // namespace ckce
