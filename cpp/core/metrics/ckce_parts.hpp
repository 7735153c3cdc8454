// What the estimators of CKCE share: bounds, and the end of the influence.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/rounding.hpp"
#include "core/base/samples.hpp"
#include "core/kernels/label_kernel.hpp"

namespace ckce {

// |CKCE - form| for any V^ with Tr V^'K V^ = form +- form_error whose residual is rho = R - (K +
// ridge I) V^, everything scaled by sqrt(w): V = V^ + W rho, and |W rho|_K <= |rho| / (2
// sqrt(ridge)), because s / (s + ridge)^2 <= 1 / (4 ridge) for every eigenvalue s of K. So
// sqrt(CKCE) = |V|_K differs from |V^|_K by no more than that.
inline double residual_bound(double form, double form_error, double rho, double ridge) {
  return form_error + std::sqrt((form + form_error) / ridge) * rho + rho * rho / (4.0 * ridge);
}

constexpr const char* kNoConvergence =
    "the iteration for method='exact' did not reach tol: regularization is too small for it; pass "
    "a larger one, a larger tol, or method='cholesky'";

// The rank that a factor for the debias term may have, at most: 256 MB, or twice the size of Q; and
// the share of the term that it may leave to a first-order correction.
inline Index most_debias_rank(Index n, Index m) {
  return std::min({std::max<Index>({512, 32000000 / n, 2 * m}), Index{4096}, n});
}
constexpr double kDebiasShare = 1e-3;

// Labels of a group may depend on each other: nobody knows the mean of the value.
constexpr double kNoFloor = std::numeric_limits<double>::quiet_NaN();

// How far rounding may move R F, in the norm sqrt(sum_i w_i |r_i F|^2) that is given for R = R F:
// |r_i|^2 <= 2 otherwise.
inline double residual_error(const LabelKernel& label, double weight, double r_norm) {
  if (label.kronecker()) return kUnit * r_norm;
  const double terms = static_cast<double>(label.factor.rows() + 4);
  return terms * kUnit * label.factor.norm() * std::sqrt(2.0 * weight);
}

// What is added for F F' = L, which eigenvectors give to about 16 m u |L|, and never more than the
// largest value there is: 0 <= CKCE <= |R F|^2 / (4 ridge), by the same inequality.
inline double finish_bound(double bound, double value, const LabelKernel& label, double weight,
                           double ridge) {
  const double norm = label.kronecker() ? 1.0 : label.factor.squaredNorm();  // of L, at least
  const double largest = 2.0 * weight * norm / (4.0 * ridge);
  if (!label.kronecker())
    bound += 16.0 * kUnit * static_cast<double>(label.factor.rows()) * largest;
  return std::isfinite(bound) ? std::min(bound, std::max(value, largest))
                              : std::max(value, largest);
}

// How far rounding may move X = M^-1 S, S = Phi'R F, M = Phi'Phi + ridge I, and what comes of it.
// A solve by Cholesky factors solves (M + D) X = S with |D| <= (3 d + 2) u Tr M (Higham 2002,
// theorem 10.4, |L|_F^2 = Tr M); the sums M and S are off by depth u Tr Phi'Phi and depth u
// sqrt(Tr Phi'Phi) |R|. That leaves tau of the system, and M >= ridge I: X is off by |tau| / ridge,
// Phi X by |tau| / (2 sqrt(ridge)).
struct PrimalError {
  double value;  // of |X|^2
  double u;      // of |U|, U = Phi H, M H = X
  double v;      // of |V|, V = (R - Phi X) / ridge

  PrimalError(const Matrix& x, const Matrix& h, double trace, double depth,
              const LabelKernel& label, double weight, double ridge) {
    const double d = static_cast<double>(x.rows());
    const double solve = (3.0 * d + 4.0) * kUnit * (trace + d * ridge);
    const double root = std::sqrt(trace);
    const double r_norm =
        std::sqrt(2.0 * weight * (label.kronecker() ? 1.0 : label.factor.squaredNorm()));
    const double x_norm = x.norm();
    const double tau = (solve + depth * kUnit * trace) * x_norm + depth * kUnit * root * r_norm +
                       root * residual_error(label, weight, r_norm);
    const double dx = tau / ridge;
    value = dx * (2.0 * x_norm + dx) + (d + 16.0) * kUnit * x_norm * x_norm;
    v = tau / (2.0 * std::sqrt(ridge)) / ridge +
        (d + 4.0) * kUnit * (r_norm + root * x_norm) / ridge;
    u = ((solve + depth * kUnit * trace) * h.norm() + dx) / (2.0 * std::sqrt(ridge)) +
        (d + 4.0) * kUnit * root * h.norm();
  }
};

// What is known of U or V: sum_i sqrt(w_i E_ii) |x_i|, |X|, and how far rounding may move |X|.
struct Weighed {
  double by_e;
  double norm;
  double error;
};

// |CKCE under Phi Phi' - CKCE under K|, K = Phi Phi' + E. If E >= 0, then by the resolvent identity
// twice the difference is V'EV - 2 U'EV + 2 U'EWEV - t V'EWEV, t in [1, 2], W = (K + ridge I)^-1,
// and E W E <= E Tr E / (Tr E + ridge): at most 2 (1 + Tr E / (Tr E + ridge)) s_U s_V + s_V^2 with
// s_X = sum_i sqrt(w_i E_ii) |x_i|.
//
// Rounding leaves E = Z - H with Z >= 0 and |H_ij| <= sqrt(eta_i eta_j), see slack.hpp. Then
// |E_ij| <= e_i e_j with e_i = sqrt(E_ii) + 3 sqrt(eta_i), and s_X grows by 3 sqrt(slack) |X|,
// slack = sum_i w_i eta_i >= |H|; K + ridge I >= Z + (ridge - slack) I, and so half of the ridge is
// left to E W E where slack <= ridge / 2. Above, there is no certificate.
inline double certificate(const Weighed& u, const Weighed& v, double trace_e, double slack,
                          double ridge) {
  if (!(slack <= 0.5 * ridge)) return std::numeric_limits<double>::infinity();
  const double root = std::sqrt(trace_e) + 3.0 * std::sqrt(slack);
  const double s_u = u.by_e + 3.0 * std::sqrt(slack) * u.norm + root * u.error;
  const double s_v = v.by_e + 3.0 * std::sqrt(slack) * v.norm + root * v.error;
  const double most = root * root;
  return 2.0 * (1.0 + most / (most + 0.5 * ridge)) * s_u * s_v + s_v * s_v;
}

// From w_i t_i to psi_i = scale (t_i - mean t), the influence of one copy of sample i.
inline void finish_influence(Vector& t, const Samples& samples, double scale) {
  const double mean = t.sum() / total_weight(samples);
  for (Index i = 0; i < t.size(); ++i) t[i] = scale * (t[i] / samples.weight(i) - mean);
}

}  // namespace ckce
