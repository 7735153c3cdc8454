#include "validate.hpp"

#include <algorithm>
#include <cmath>

namespace ckce {
namespace {

// Sums and smallest entries of rows whose entries lie side by side, as they come.
template <class T>
void summarise_rows(const Probs& probs, Index begin, Vector& sums, Vector& smallest) {
  using Row = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>, Eigen::Unaligned>;
  for (Index i = 0; i < sums.size(); ++i) {
    const auto* at = probs.data + (begin + i) * probs.row_stride;
    const Row row(reinterpret_cast<const T*>(at), probs.m);
    sums[i] = row.template cast<double>().sum();
    smallest[i] = static_cast<double>(row.minCoeff());
  }
}

void summarise(const Probs& probs, Index begin, Index rows, Vector& sums, Vector& smallest) {
  sums.resize(rows);
  smallest.resize(rows);
  if (probs.dtype == Dtype::kFloat64 && probs.col_stride == sizeof(double))
    return summarise_rows<double>(probs, begin, sums, smallest);
  if (probs.dtype == Dtype::kFloat32 && probs.col_stride == sizeof(float))
    return summarise_rows<float>(probs, begin, sums, smallest);
  Matrix q(rows, probs.m);
  probs.load(begin, rows, q);
  sums = q.rowwise().sum();
  smallest = q.rowwise().minCoeff();
}

// Looks for the offending entries of a row that cannot be in the simplex.
void inspect(const Matrix& q, Index row, double sum, double tolerance, Report& report) {
  for (Index j = 0; j < q.cols(); ++j) {
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

Report validate(const Samples& samples, double sum_tolerance, Parallel& parallel) {
  const Index m = samples.m();
  Report report;
  if (samples.n() > 0) report.smallest_label = report.largest_label = samples.labels[0];
  parallel.each((samples.n() + kBlock - 1) / kBlock, [&] {
    return [&, sums = Vector(), smallest = Vector(), row = Matrix(1, m)](Index task) mutable {
      const Index begin = task * kBlock;
      const Index rows = std::min(kBlock, samples.n() - begin);
      summarise(samples.probs, begin, rows, sums, smallest);
      Report found;
      found.smallest_label = found.largest_label = samples.labels[begin];
      for (Index i = 0; i < rows; ++i) {
        // A sum is not finite if an entry is not.
        if (!(std::abs(sums[i] - 1.0) <= sum_tolerance) || !(smallest[i] >= 0.0)) {
          samples.probs.load(begin + i, 1, row);
          inspect(row, begin + i, sums[i], sum_tolerance, found);
        }
        const std::int64_t label = samples.labels[begin + i];
        found.smallest_label = std::min(found.smallest_label, label);
        found.largest_label = std::max(found.largest_label, label);
        if (label < 0 || label >= m)
          found.bad_label.record(begin + i, -1, static_cast<double>(label), 1);
      }
      parallel.in_turn(task, [&] { report.merge(found); });
    };
  });
  return report;
}

}  // namespace ckce
