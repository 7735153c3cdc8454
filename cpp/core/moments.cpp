#include "moments.hpp"

#include <limits>
#include <type_traits>

#include "dense.hpp"
#include "products.hpp"
#include "ridge_solve.hpp"

namespace ckce {
namespace {

// From this many classes on Phi'Q is taken from Phi'Phi; below, the product with R is as cheap and
// does not cancel.
constexpr Index kManyClasses = 32;

// One block of rows: Q, then R in its place, and Phi.
template <class Scalar>
class Block {
 public:
  using MatrixS = Eigen::MatrixX<Scalar>;

  Block(const Features& features, Index m)
      : q_(unset<MatrixS>(kBlock + kPadding, m)),
        phi_(unset<MatrixS>(kBlock + kPadding, features.d())) {}

  void load(const Features& features, const Samples& samples, Index block) {
    begin = block * kBlock;
    rows = std::min(kBlock, samples.n() - begin);
    labels = samples.labels + begin;
    weights = weights_of(samples, begin, rows);
    samples.probs.load(begin, rows, q());
    features.fill(begin, q(), phi());
  }
  Eigen::Ref<MatrixS> q() { return q_.topRows(rows); }
  Eigen::Ref<MatrixS> phi() { return phi_.topRows(rows); }

  Index begin = 0;
  Index rows = 0;
  const std::int64_t* labels = nullptr;
  Vector weights;

 private:
  MatrixS q_;
  MatrixS phi_;
};

Index block_count(const Samples& samples) { return (samples.n() + kBlock - 1) / kBlock; }

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

// CKCE by n instead of d unknowns: K = Phi Phi'. O(n^2 d)
Solution solve_dual(const Features& features, const Samples& samples, const LabelKernel& label,
                    double ridge, bool full, Parallel& parallel) {
  Matrix q(samples.n(), samples.m());
  Matrix phi(samples.n(), features.d());
  samples.probs.load(0, samples.n(), q);
  features.fill(0, q, phi);
  Matrix gram = Matrix::Zero(samples.n(), samples.n());
  add_product_nt(gram, 1.0, phi, phi);
  return solve_gram(std::move(gram), samples, label, ridge, full, parallel);
}

}  // namespace

Moments::Moments(const Features& features, Index m)
    : scattered(features.starts_with_q() && m >= kManyClasses),
      phi_phi(Matrix::Zero(features.d(), features.d())),
      labels_phi(Matrix::Zero(m, features.d())) {}

template <class Scalar>
void Moments::add_in(const Features& features, const Samples& samples, const LabelKernel* label,
                     Parallel& parallel) {
  using MatrixS = Eigen::MatrixX<Scalar>;
  const Index d = features.d();
  const Index m = samples.m();
  // Adding a block's sum costs d^2 memory traffic: share it between two blocks where that is large.
  const Index blocks_per_task = d > 512 ? 2 : 1;
  const Index n_blocks = block_count(samples);

  parallel.each((n_blocks + blocks_per_task - 1) / blocks_per_task, [&] {
    return [&, block = Block<Scalar>(features, m), sum = unset<MatrixS>(d, d),
            sum_labels = unset<MatrixS>(m, d)](Index task) mutable {
      double sum_weight = 0.0;
      double sum_diagonal = 0.0;
      sum.setZero();
      sum_labels.setZero();
      const Index last = std::min((task + 1) * blocks_per_task, n_blocks);
      for (Index b = task * blocks_per_task; b < last; ++b) {
        block.load(features, samples, b);
        auto phi = block.phi();
        sum_weight += block.weights.sum();
        if (label || !scattered) residuals_in_place<Scalar>(block.labels, block.q());
        if constexpr (std::is_same_v<Scalar, double>)
          if (label)
            sum_diagonal += block.weights.dot(
                phi.rowwise().squaredNorm().cwiseProduct(label->norms(block.q())));
        const auto root = block.weights.array().sqrt().template cast<Scalar>();
        if (samples.weights) phi.array().colwise() *= root;
        add_gram(sum, phi);
        if (samples.weights) phi.array().colwise() *= root;
        if (scattered) {
          scatter_rows<Scalar>(block.labels, phi, sum_labels);
        } else {
          add_product_tn(sum_labels, Scalar(1), block.q(), phi);
        }
      }
      parallel.in_turn(task, [&] {
        weight += sum_weight;
        diagonal += sum_diagonal;
        for (Index j = 0; j < d; ++j)
          phi_phi.col(j).tail(d - j) += sum.col(j).tail(d - j).template cast<double>();
        labels_phi += sum_labels.template cast<double>();
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

Solution solve_features(const Features& features, const Samples& samples, const LabelKernel& label,
                        double ridge, const Vector* residual, bool full, Precision precision,
                        Parallel& parallel) {
  if (samples.n() < features.d() && !residual)
    return solve_dual(features, samples, label, ridge, full, parallel);

  parallel.span(0.0, full ? 0.4 : 1.0);
  Moments moments(features, samples.m());
  moments.add(features, samples, nullptr, precision, parallel);
  Matrix x =
      label.apply(moments.phi_r());  // X = M^-1 Phi'R F with M = Phi'Phi + ridge I  (d, width)
  const RidgeSolver solver(std::move(moments.phi_phi), ridge, parallel);
  solver.solve(x, parallel);

  Solution solution;
  solution.per_class = x.colwise().squaredNorm().transpose();
  solution.value = solution.per_class.sum();
  if (!full) return solution;

  Matrix h = x;  // H = M^-1 X
  solver.solve(h, parallel);
  solution.influence.resize(samples.n());
  double s_u = 0.0;
  double s_v = 0.0;
  double eps = 0.0;
  parallel.span(0.4, 1.0);
  parallel.each(block_count(samples), [&] {
    return [&, block = Block<double>(features, samples.m())](Index task) mutable {
      block.load(features, samples, task);
      const Vector spreads = label.spreads(block.q());
      residuals_in_place(block.labels, block.q());
      const Matrix r = label.apply(block.q());
      const Matrix u = product(block.phi(), h);      // u_i = phi_i H
      const Matrix e = r - product(block.phi(), x);  // e_i = r_i - phi_i X = ridge v_i
      Matrix a = block.phi().transpose();
      solver.solve(a);
      const Vector a_ii = a.colwise().squaredNorm().transpose().cwiseProduct(block.weights);
      const double debias = a_ii.dot(r.rowwise().squaredNorm());
      const double floor = a_ii.dot(spreads);
      solution.influence.segment(block.begin, block.rows) =
          u.cwiseProduct(e).rowwise().sum().cwiseProduct(block.weights);
      double block_u = 0.0, block_v = 0.0, block_eps = 0.0;
      if (residual) {
        // Rows carry sqrt(w_i) in u, v and in sqrt(E_ii).
        const auto root_e = residual->segment(block.begin, block.rows).cwiseSqrt();
        block_u = root_e.cwiseProduct(u.rowwise().norm()).dot(block.weights);
        block_v = root_e.cwiseProduct(e.rowwise().norm()).dot(block.weights) / ridge;
        block_eps = residual->segment(block.begin, block.rows).dot(block.weights);
      }
      parallel.in_turn(task, [&] {
        solution.debias += debias;
        solution.floor += floor;
        s_u += block_u;
        s_v += block_v;
        eps += block_eps;
      });
    };
  });
  const double lambda = ridge / total_weight(samples);
  solution.bound = 32.0 * std::numeric_limits<double>::epsilon() * (1.0 + 2.0 / lambda) *
                       (solution.value + solution.debias) +
                   2.0 * (1.0 + eps / (eps + ridge)) * s_u * s_v + s_v * s_v;
  finish_influence(solution.influence, samples, 2.0 * total_weight(samples));
  return solution;
}

}  // namespace ckce
