#include "core/binary/groups_binary.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "core/binary/binary_rows.hpp"
#include "core/binary/two_classes.hpp"
#include "core/metrics/within_groups.hpp"

namespace ckce {
namespace {

constexpr Index kLargeGroup = 4096;  // rows whose tiles of K take longer than their cells
constexpr Index kMostColumns = 64;   // groups of a task
constexpr Index kMostUnknowns = Index{1} << 20;  // of all groups of a task, if they are several

// b += w r a_i, or w r at the row's point
class Places {
 public:
  Places(const CellProblem& problem, const CellSums& sums) : problem_(problem), sums_(sums) {
    for (Index c = 0; c < problem.kernel().count(); ++c)
      index_.emplace(problem.kernel().cell(c), c);
  }

  template <class Column>
  void add(double p, double w_r, Vector& polynomials, Column b) const {
    const CellKernel& kernel = problem_.kernel();
    const std::int64_t cell = kernel.grid().cell(p);
    const auto found = index_.find(cell);
    if (found == index_.end()) return;  // another thread wrote into the caller's array
    const Index begin = problem_.begin(found->second);
    if (problem_.dense(found->second)) {
      chebyshev(kernel.grid().place(p, cell), kernel.nodes(), polynomials.data());
      b.segment(begin, kernel.nodes()) += w_r * polynomials;
      return;
    }
    const auto& points = sums_.cell(kernel.slot(found->second)).points;
    for (std::size_t j = 0; j < points.size(); ++j)
      if (points[j].p == p) b[begin + static_cast<Index>(j)] += w_r;
  }

 private:
  const CellProblem& problem_;
  const CellSums& sums_;
  std::unordered_map<std::int64_t, Index> index_;
};

// All rows, at the points where the problem has them: [1 - p, p].
GatheredRows rows_on_simplex(const Samples& samples) {
  std::vector<Index> every(as_size(samples.n()));
  std::iota(every.begin(), every.end(), Index{0});
  GatheredRows rows(samples, std::move(every));
  for (Index i = 0; i < rows.count(); ++i) {
    const double p = on_simplex(rows.q(i, 0), rows.q(i, 1));
    rows.q(i, 0) = 1.0 - p;
    rows.q(i, 1) = p;
  }
  return rows;
}

// r_i L r_i'
Vector norms_of(const GatheredRows& rows, const LabelKernel& label) {
  Matrix r = rows.q;
  residuals_in_place(rows.labels.data(), r);
  return label.norms(r);
}

}  // namespace

double debias_by_group(const CellProblem& problem, const CellSums& sums, const Samples& samples,
                       Parallel& parallel) {
  const Groups& groups = *samples.groups;
  const Places places(problem, sums);
  double total = 0.0;
  // Together, because products of matrices are 10 times faster than those of vectors.
  const Index together = std::clamp<Index>(kMostUnknowns / problem.rank(), 1, kMostColumns);
  parallel.each(count_pieces(groups.count(), together), [&] {
    return
        [&, polynomials = Vector(problem.kernel().nodes()), q = Matrix(1, 2)](Index task) mutable {
          const Index first = task * together;
          Matrix b = Matrix::Zero(problem.rank(), std::min(together, groups.count() - first));
          for (Index g = 0; g < b.cols(); ++g)
            for (const Index row : groups.rows(first + g)) {
              samples.probs.load(row, 1, q);
              const double p = on_simplex(q(0, 0), q(0, 1));
              const double r = (samples.labels[row] == 1 ? 1.0 : 0.0) - p;
              places.add(p, samples.weight(row) * r, polynomials, b.col(g));
            }
          problem.compress(b);
          const double sum = problem.forms(b);
          parallel.in_turn(task, [&] { total += sum; });
        };
  });
  return total;
}

JkceSums leave_groups_out(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                          JkceSums sums, Parallel& parallel) {
  const Groups& groups = *samples.groups;
  const GatheredRows all = rows_on_simplex(samples);
  const Vector own = kernel.diagonal(all.q).cwiseProduct(norms_of(all, label));
  std::vector<Index> small;         // rows of groups that tiles serve
  std::vector<std::int64_t> codes;  // and their groups
  Vector within(samples.n());
  std::int64_t count = 0;
  for (Index g = 0; g < groups.count(); ++g) {
    const std::vector<Index> rows = groups.rows(g);
    if (groups.size(g) <= kLargeGroup) {
      small.insert(small.end(), rows.begin(), rows.end());
      codes.insert(codes.end(), rows.size(), count++);
      continue;
    }
    const GatheredRows part(all.samples(), rows);
    const JkceSums alone = jkce_two_classes(kernel, part.samples(), label, true, parallel);
    for (Index k = 0; k < part.count(); ++k) {
      const Index row = rows[as_size(k)];
      within[row] = alone.rows[k] + own[row];
    }
  }
  if (!small.empty()) {
    const GatheredRows part(all.samples(), small);
    const Groups of_part(codes.data(), part.count());
    Samples grouped = part.samples();
    grouped.groups = &of_part;
    const Points points = kernel.points(grouped.probs, parallel);
    const Vector found = within_groups(Gram{kernel, points}, grouped, label, parallel);
    for (Index k = 0; k < part.count(); ++k) within[small[as_size(k)]] = found[k];
  }
  sums.rows += own - within;
  const Vector w = weights_of(samples, 0, samples.n());
  sums.diagonal = w.dot(within);
  sums.off_diagonal = w.dot(sums.rows);
  return sums;
}

}  // namespace ckce
