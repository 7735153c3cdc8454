// Bins of a scalar: sum_b p_b |g_b| of eq. (10) of the paper for the confidence, or class by class.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/panels.hpp"
#include "core/base/rounding.hpp"
#include "core/base/row_panel.hpp"
#include "core/metrics/ece.hpp"
#include "core/metrics/uniform_bins.hpp"

namespace ckce {
namespace {

// The last bin whose lower edge is not above p.
Index quantile_bin(const Eigen::Ref<const Vector>& edges, double p) {
  const double* inner = edges.data() + 1;
  return std::upper_bound(inner, inner + edges.size() - 2, p) - inner;
}

// A sum that carries what its additions rounded away (Neumaier 1974).
class CarefulSum {
 public:
  void add(double x) {
    const double next = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0.0;
  double lost_ = 0.0;
};

// Lower edges of the bins of equal weight, edges[0] = 0 and edges[B] = 1 given. B F / N of weights
// such as 0.1 may miss a whole number by rounding: it counts as that number.
void cut_at_quantiles(const Samples& samples, const std::vector<double>& p, double total,
                      Eigen::Ref<Vector> edges) {
  const Index n_bins = edges.size() - 1;
  std::vector<Index> order;
  std::vector<double> sorted;
  if (samples.weights) {
    order.resize(p.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](Index a, Index b) { return p[as_size(a)] < p[as_size(b)]; });
  } else {
    sorted = p;
    std::sort(sorted.begin(), sorted.end());
  }
  const auto value = [&](std::size_t i) {
    return samples.weights ? p[as_size(order[i])] : sorted[i];
  };
  const double scale = static_cast<double>(n_bins) / total * (1.0 + 16.0 * kUnit);
  double below = 0.0;  // F
  CarefulSum rank;     // weight of the rows before i
  Index bin = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (i > 0 && value(i) > value(i - 1)) below = rank.value();
    const auto here = std::min(static_cast<Index>(scale * below), n_bins - 1);
    while (bin < here) edges[++bin] = value(i);
    rank.add(samples.weights ? samples.weights[order[i]] : 1.0);
  }
  while (bin + 1 < n_bins) edges[++bin] = std::max(1.0, value(p.size() - 1)) + 1.0;
}

// A panel of rows: their predictions, or the confidences in the predicted classes.
class ScalarPanel {
 public:
  ScalarPanel(const Samples& samples, Variant variant)
      : samples_(samples), variant_(variant), panel_(samples.m()) {}

  void load(Index first, Index count) {
    begin = first;
    rows = count;
    if (variant_ == Variant::kTopLabel)
      panel_.look(samples_.probs, begin, rows);
    else
      panel_.load(samples_.probs, begin, rows);
  }
  const double* column(Index group) const {
    return variant_ == Variant::kTopLabel ? panel_.confidence : panel_.q.col(group).data();
  }
  // From the bin b of a row to 2 b, or 2 b + 1 if its label is what the group's probability is of.
  void add_hits(Index group, std::int32_t* at) const {
    const std::int64_t* labels = samples_.labels + begin;
    if (variant_ == Variant::kTopLabel) {
      for (Index i = 0; i < rows; ++i)
        at[i] = 2 * at[i] +
                static_cast<std::int32_t>(panel_.predicted[i] == static_cast<double>(labels[i]));
    } else {
      for (Index i = 0; i < rows; ++i)
        at[i] = 2 * at[i] + static_cast<std::int32_t>(labels[i] == group);
    }
  }
  const RowPanel& panel() const { return panel_; }

  Index begin = 0;
  Index rows = 0;

 private:
  const Samples& samples_;
  Variant variant_;
  RowPanel panel_;
};

// The lower edges of all groups. The upper edge of the last bin stays 1.
Matrix make_edges(const Samples& samples, Variant variant, Strategy strategy, Index n_bins,
                  Index groups, Parallel& parallel) {
  Matrix edges(n_bins + 1, groups);
  for (Index b = 0; b <= n_bins; ++b)
    edges.row(b).setConstant(static_cast<double>(b) / static_cast<double>(n_bins));
  if (strategy == Strategy::kUniform) return edges;
  CarefulSum total;
  for (Index i = 0; i < samples.n(); ++i) total.add(samples.weight(i));
  parallel.each(groups, [&] {
    return [&, p = std::vector<double>(as_size(samples.n())),
            panel = ScalarPanel(samples, variant)](Index group) mutable {
      for (Index begin = 0; begin < samples.n(); begin += kPanel) {
        const Index rows = std::min(kPanel, samples.n() - begin);
        if (variant == Variant::kTopLabel) {
          panel.load(begin, rows);
          std::copy_n(panel.column(0), rows, p.begin() + begin);
        } else {  // one column: the others need not be read
          Probs column = samples.probs;
          column.data += group * column.col_stride;
          column.m = 1;
          column.load(begin, rows, Eigen::Map<Matrix>(p.data() + begin, rows, 1));
        }
        parallel.tick();
      }
      std::transform(p.begin(), p.end(), p.begin(), still_probability);  // NaN has no rank
      cut_at_quantiles(samples, p, total.value(), edges.col(group));
    };
  });
  return edges;
}

// Sums over the rows of one task, (2, B, groups): of the rows of a bin that miss and that hit.
struct Table {
  struct Cell {
    double prob = 0.0, count = 0.0;
    double weight = 0.0;  // unless all weights are 1
  };

  Table() = default;
  Table(Index n_bins_, Index groups) : n_bins(n_bins_), cells(as_size(2 * n_bins_ * groups)) {}

  template <class FindBins>
  void add(const Samples& samples, const ScalarPanel& panel, Index group, FindBins find) {
    const double* p = panel.column(group);
    Cell* column = cells.data() + group * 2 * n_bins;
    std::int32_t at[kPanel];
    find(p, panel.rows, at);
    panel.add_hits(group, at);
    if (samples.weights) {
      for (Index i = 0; i < panel.rows; ++i) {
        const double w = samples.weights[panel.begin + i];
        Cell& cell = column[at[i]];
        cell.count += 1.0;
        cell.prob += w * p[i];
        cell.weight += w;
      }
    } else {
      for (Index i = 0; i < panel.rows; ++i) {
        Cell& cell = column[at[i]];
        cell.count += 1.0;
        cell.prob += p[i];
      }
    }
  }

  Index n_bins = 0;
  std::vector<Cell> cells;
  Report report;
};

// Rows of a task that fills one table. At most kBinTables of them.
Index panels_per_table(Index n_panels) {
  return std::max<Index>(kCheckedRows / kPanel, count_pieces(n_panels, kBinTables));
}

// Each over its own rows; to be added in order.
std::vector<Table> fill_tables(const Samples& samples, Variant variant, Strategy strategy,
                               const Matrix& edges, double sum_tolerance, Parallel& parallel) {
  const Index n_bins = edges.rows() - 1;
  const Index groups = edges.cols();
  const Index panels = Panels::count(samples.n());
  const Index per_table = panels_per_table(panels);
  std::vector<Table> tables(as_size(count_pieces(panels, per_table)));
  const UniformBins uniform(n_bins);
  parallel.each(static_cast<Index>(tables.size()), [&] {
    return [&, panel = ScalarPanel(samples, variant),
            inspector = Inspector(samples, sum_tolerance)](Index task) mutable {
      Table table(n_bins, groups);
      Report& report = table.report;
      report.smallest_label = report.largest_label = samples.labels[task * per_table * kPanel];
      const Index last = std::min((task + 1) * per_table, panels);
      for (Index k = task * per_table; k < last; ++k) {
        panel.load(k * kPanel, std::min(kPanel, samples.n() - k * kPanel));
        inspector.look(panel.panel(), panel.begin, panel.rows, report);
        if (!report.clean()) continue;  // the bins of such numbers might not exist
        for (Index g = 0; g < groups; ++g) {
          if (strategy == Strategy::kUniform)
            table.add(samples, panel, g, uniform);
          else
            table.add(samples, panel, g, [&](const double* p, Index rows, std::int32_t* at) {
              for (Index i = 0; i < rows; ++i)
                at[i] = static_cast<std::int32_t>(quantile_bin(edges.col(g), p[i]));
            });
        }
        parallel.tick();
      }
      tables[as_size(task)] = std::move(table);
    };
  });
  return tables;
}

void add_tables(const std::vector<Table>& tables, bool weighted, ScalarBins& bins) {
  bins.weight = bins.prob = bins.hits = bins.count =
      Matrix::Zero(bins.edges.rows() - 1, bins.edges.cols());
  bins.report = tables.front().report;
  for (const Table& table : tables) {
    if (&table != &tables.front()) bins.report.merge(table.report);
    for (std::size_t k = 0; k < table.cells.size(); ++k) {
      const Table::Cell& cell = table.cells[k];
      const auto at = static_cast<Index>(k / 2);  // both are column-major
      const double weight = weighted ? cell.weight : cell.count;
      bins.weight.data()[at] += weight;
      bins.prob.data()[at] += cell.prob;
      if (k % 2 == 1) bins.hits.data()[at] += weight;
      bins.count.data()[at] += cell.count;
    }
  }
}

Gaps measure_gaps(const ScalarBins& bins, Index group, double total) {
  Gaps gaps;
  for (Index b = 0; b < bins.count.rows(); ++b) {
    if (bins.count(b, group) == 0.0) continue;
    const double weight = bins.weight(b, group);
    const double gap = std::abs(bins.hits(b, group) - bins.prob(b, group));
    const double rate = bins.hits(b, group) / weight;
    gaps.add_bin(total, weight, gap, gap * gap, gap, rate * (1.0 - rate));
  }
  return gaps;
}

}  // namespace

ScalarBins ece_scalar(const Samples& samples, Variant variant, Strategy strategy, Index n_bins,
                      double sum_tolerance, Parallel& parallel) {
  const Index groups = variant == Variant::kTopLabel ? 1 : samples.m();
  const double sorting = strategy == Strategy::kQuantile ? 0.7 : 0.0;  // its share of the time
  ScalarBins bins;
  parallel.span(0.0, sorting);
  bins.edges = make_edges(samples, variant, strategy, n_bins, groups, parallel);
  parallel.span(sorting, 1.0);
  add_tables(fill_tables(samples, variant, strategy, bins.edges, sum_tolerance, parallel),
             samples.weights != nullptr, bins);
  bins.edges = bins.edges.cwiseMin(1.0);  // bins that nothing can fall into lie above 1
  const double total = total_weight(samples);
  for (Index g = 0; g < groups; ++g) bins.gaps.push_back(measure_gaps(bins, g, total));
  return bins;
}

}  // namespace ckce
