// Maps phi with Phi Phi' ~ K, the Phi-hat of eq. (9) of the paper, transposed: rows are samples.
// They come in blocks; Phi never exists whole.
#pragma once

#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "core/base/parallel.hpp"
#include "core/base/types.hpp"

namespace ckce {

class LineSections;  // line_sections.hpp

class Features {
 public:
  virtual ~Features() = default;
  virtual Index d() const = 0;
  virtual Index m() const = 0;
  // The number of rows, if the map knows these rows only.
  virtual std::optional<Index> rows() const { return std::nullopt; }
  // True if the first m features are q itself; then Phi'Q is a sub-block of Phi'Phi.
  virtual bool starts_with_q() const { return false; }

  // Of two classes: the bandwidth h such that the features are exp(-(p - c)^2 / h^2), or wider, and
  // powers of q; infinity if there are powers only, 0 if they are anything else.
  virtual double line_bandwidth() const { return 0.0; }
  // Adds what these features are made of; false if that is not known, or not accurate.
  virtual bool add_sections(LineSections&) const { return false; }

  // phi(i, :) = phi(q_i) for the samples begin, begin + 1, ..., whose predictions are q (rows, m).
  virtual void fill(Index begin, const In& q, MatrixRef phi) const = 0;
  // The same for these samples, in any order.
  virtual void fill_rows(const std::vector<Index>& /*rows*/, const In& q, MatrixRef phi) const {
    fill(0, q, phi);
  }
  // The same in float32, for precision="mixed".
  virtual void fill(Index, const FloatIn&, FloatMatrixRef) const {
    throw std::logic_error("this feature map is float64 only");
  }

  // q_bar += J'phi_bar, J the derivative of phi at q, row by row: what a function of phi with the
  // gradient phi_bar (rows, d) has as its gradient in q (rows, m), given phi of these rows.
  virtual void pull_back(const In& /*q*/, const In& /*phi*/, const In& /*phi_bar*/,
                         MatrixRef /*q_bar*/) const {
    throw std::logic_error("this feature map has no gradient");
  }

  // True if E = K - Phi Phi' is positive semi-definite. Then its diagonal certifies how far CKCE
  // is from that under K, and what follows has a meaning.
  virtual bool certified() const { return false; }
  // E_ii and what rounding may have taken from it, for the same samples.
  // (rows,)
  virtual Vector left_out(Index /*begin*/, const In& /*q*/, const In& /*phi*/) const { return {}; }
  // Tr K from sum_i w_i and sum_i w_i |q_i|^2, for certified maps of any rows; infinity for others.
  virtual double trace(double /*weight*/, double /*sharpness*/) const {
    return std::numeric_limits<double>::infinity();
  }
  // Factors of the features that leave out one of `groups` random parts and scale up the rest, for
  // the error of maps that are random sums; none for others. (d,)
  virtual Vector without(Index /*group*/, Index /*groups*/) const { return {}; }
  // How much rounding may take away from E >= 0, see slack.hpp, from the lower triangle of
  // Phi'diag(w)Phi and sum_i w_i. O(d^3)
  virtual double slack(const Matrix&, double /*weight*/, Parallel&) const { return 0.0; }
};

}  // namespace ckce
