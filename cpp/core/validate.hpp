// The door: one pass over the numbers. It only counts and remembers the first offender of each
// kind; what to say about it is decided in Python.
#pragma once

#include <cstdint>

#include "core/base/parallel.hpp"
#include "core/base/row_panel.hpp"
#include "core/base/samples.hpp"

namespace ckce {

struct Offence {
  Index count = 0;  // of entries, or of rows for the sums
  Index row = -1;   // the first
  Index column = -1;
  double value = 0.0;

  void record(Index at_row, Index at_column, double offender, Index offences);
  void merge(const Offence& later);
};

struct Report {
  Offence not_finite;
  Offence negative;
  Offence above_one;
  Offence bad_sum;    // |sum_j q_ij - 1| > tolerance
  Offence bad_label;  // outside 0 .. m-1
  std::int64_t smallest_label = 0;
  std::int64_t largest_label = 0;

  bool clean() const {
    return not_finite.count + negative.count + above_one.count + bad_sum.count + bad_label.count ==
           0;
  }
  void merge(const Report& later);
};

// Checks panels of rows one after the other; for passes that compute while they check.
class Inspector {
 public:
  Inspector(const Samples& samples, double sum_tolerance)
      : samples_(samples), sum_tolerance_(sum_tolerance) {}
  // The `rows` rows from `begin` on, which the panel has looked at.
  void look(const RowPanel& panel, Index begin, Index rows, Report& report) const {
    look(panel.sum, panel.smallest, begin, rows, report);
  }
  // The same of rows with these sums and smallest entries.
  void look(const double* sums, const double* smallest, Index begin, Index rows,
            Report& report) const;

 private:
  const Samples& samples_;
  double sum_tolerance_;
};

// O(n m)
Report validate(const Samples& samples, double sum_tolerance, Parallel& parallel);

}  // namespace ckce
