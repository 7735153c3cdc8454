// Features of two classes by what they are made of: phi(q) = T s(q), where s are q, powers of it,
// and exp(-|q - c|^2 / (2 h^2)) for each landmark c, which vanishes but near c.
//
// Where the bandwidth is small against the spread of the predictions, few of many landmarks see a
// row, and sums of s s' cost what these cost. T multiplies the rounding of such sums by its squared
// norm; where that is much, because landmarks explain each other, s is phi itself.
#pragma once

#include <utility>
#include <vector>

#include "core/base/types.hpp"
#include "core/features/features.hpp"

namespace ckce {

class LineSections {
 public:
  explicit LineSections(const Features& features);

  bool sparse() const { return sparse_; }
  double bandwidth() const { return features_.m() == 2 ? features_.line_bandwidth() : 0.0; }
  Index count() const { return sparse_ ? count_ : features_.d(); }

  // s of rows that lie close together: these columns, the others vanish.
  struct Values {
    void add_product(Matrix& out, const Matrix& b) const;     // out += s'b
    void add_form(Matrix& out, const Vector& weights) const;  // lower triangle of out += s'diag(w)s
    Matrix times(const Matrix& f) const;                      // s f
    Matrix rows_of(const Matrix& f) const { return f(columns, Eigen::placeholders::all); }

    std::vector<Index> columns;
    Matrix s;  // (rows, columns)
  };
  void fill(const In& q, Values& to) const;  // of at most kPanel rows

  // s'(from_phi f) = phi'f, T z, and T M T' of a lower triangle. O(d^3)
  Matrix from_phi(const Matrix& f) const;
  Matrix to_phi(const Matrix& z) const;
  Matrix form_to_phi(const Matrix& lower) const;

  // Columns that never vanish, which are features themselves.
  void add_features(const Features& map);
  // Landmarks (r, 2), of whose sections the features are L^-1 [points | I], the first if `linear`.
  // False if that rounds too much.
  bool add_landmarks(const Matrix& points, double bandwidth, const Matrix& factor, bool linear);

 private:
  struct Bumps {
    Index first;  // section
    double bandwidth;
    Matrix centres;  // (r, 2), sorted by P(class 1)
  };
  struct Block {  // of T
    Index feature, section;
    Matrix t;
  };

  const Features& features_;
  bool sparse_ = false;
  Index d_ = 0;
  Index count_ = 0;
  std::vector<std::pair<const Features*, Index>> whole_;  // and their first section
  std::vector<Index> lines_;                              // first sections of copies of q
  std::vector<Bumps> bumps_;
  std::vector<Block> blocks_;
};

}  // namespace ckce
