#include "core/validate.hpp"

#include <algorithm>
#include <cmath>

namespace ckce {
namespace {

// Looks for the offending entries of a row that cannot be in the simplex.
void inspect(const Probs& probs, Index row, double sum, double tolerance, Report& report) {
  Matrix q(1, probs.m);
  probs.load(row, 1, q);
  for (Index j = 0; j < probs.m; ++j) {
    const double value = q(0, j);
    if (!std::isfinite(value))
      report.not_finite.record(row, j, value, 1);
    else if (value < 0.0)
      report.negative.record(row, j, value, 1);
    else if (value > 1.0 + tolerance)
      report.above_one.record(row, j, value, 1);
  }
  if (std::isfinite(sum) && std::abs(sum - 1.0) > tolerance) report.bad_sum.record(row, -1, sum, 1);
}

}  // namespace

void Offence::record(Index at_row, Index at_column, double offender, Index offences) {
  if (count == 0) {
    row = at_row;
    column = at_column;
    value = offender;
  }
  count += offences;
}

void Offence::merge(const Offence& later) {
  if (later.count > 0) record(later.row, later.column, later.value, later.count);
}

void Report::merge(const Report& later) {
  not_finite.merge(later.not_finite);
  negative.merge(later.negative);
  above_one.merge(later.above_one);
  bad_sum.merge(later.bad_sum);
  bad_label.merge(later.bad_label);
  smallest_label = std::min(smallest_label, later.smallest_label);
  largest_label = std::max(largest_label, later.largest_label);
}

void Inspector::look(const double* sums, const double* smallest, Index begin, Index rows,
                     Report& report) const {
  const Index m = samples_.m();
  const std::int64_t* labels = samples_.labels + begin;
  int outside = 0;
  for (Index i = 0; i < rows; ++i)  // no branches: the compiler vectorises it
    outside |= static_cast<int>(!(std::abs(sums[i] - 1.0) <= sum_tolerance_)) |
               static_cast<int>(!(smallest[i] >= 0.0));
  std::int64_t low = labels[0];
  std::int64_t high = labels[0];
  for (Index i = 0; i < rows; ++i) {
    low = labels[i] < low ? labels[i] : low;
    high = labels[i] > high ? labels[i] : high;
  }
  report.smallest_label = std::min(report.smallest_label, low);
  report.largest_label = std::max(report.largest_label, high);
  if (!outside && low >= 0 && high < m) return;
  for (Index i = 0; i < rows; ++i) {
    if (!(std::abs(sums[i] - 1.0) <= sum_tolerance_) || !(smallest[i] >= 0.0))
      inspect(samples_.probs, begin + i, sums[i], sum_tolerance_, report);
    if (labels[i] < 0 || labels[i] >= m)
      report.bad_label.record(begin + i, -1, static_cast<double>(labels[i]), 1);
  }
}

Report validate(const Samples& samples, double sum_tolerance, Parallel& parallel) {
  Report report;
  if (samples.n() > 0) report.smallest_label = report.largest_label = samples.labels[0];
  parallel.each(count_pieces(samples.n(), kCheckedRows), [&] {
    return [&, panel = RowPanel(samples.m()),
            inspector = Inspector(samples, sum_tolerance)](Index task) mutable {
      Report found;
      found.smallest_label = found.largest_label = samples.labels[task * kCheckedRows];
      const Index last = std::min((task + 1) * kCheckedRows, samples.n());
      for (Index begin = task * kCheckedRows; begin < last; begin += kPanel) {
        const Index rows = std::min(kPanel, last - begin);
        panel.look(samples.probs, begin, rows);
        inspector.look(panel, begin, rows, found);
      }
      parallel.in_turn(task, [&] { report.merge(found); });
    };
  });
  return report;
}

}  // namespace ckce
