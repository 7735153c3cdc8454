#include "ece.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "random.hpp"
#include "residuals.hpp"
#include "row_panel.hpp"

namespace ckce {
namespace {

// The bins [b/B, (b+1)/B), with the edges rounded to the nearest double.
class UniformBins {
 public:
  explicit UniformBins(Index n_bins) : size_(static_cast<double>(n_bins)), edges_(n_bins + 1) {
    for (Index b = 1; b < n_bins; ++b) edges_[b] = static_cast<double>(b) / size_;
    edges_[0] = -std::numeric_limits<double>::infinity();
    edges_[n_bins] = std::numeric_limits<double>::quiet_NaN();  // nothing compares as beyond it
  }
  Index operator()(double p) const {
    const auto b = static_cast<Index>(scaled(p));
    return b + (p >= edges_[b + 1]) - (p < edges_[b]);  // the product may round across an edge
  }
  // The same of many; the edges need only be looked up where one is near.
  void operator()(const double* p, Index rows, std::int32_t* at) const {
    int near = 0;
    for (Index i = 0; i < rows; ++i) {
      const double x = scaled(p[i]);
      at[i] = static_cast<std::int32_t>(x);
      const double above = x - static_cast<double>(at[i]);
      near |= static_cast<int>(above < kNear) | static_cast<int>(above > 1.0 - kNear);
    }
    if (!near) return;
    for (Index i = 0; i < rows; ++i) at[i] = static_cast<std::int32_t>((*this)(p[i]));
  }

 private:
  static constexpr double kNear = 1e-9;  // above the round-off of 100,000 bins

  // Whatever p is has a bin, also NaN: the array may have changed since it was checked. 0 and 1
  // are the commonest, and no edges.
  double scaled(double p) const { return std::min(std::max(0.5, p * size_), size_ - 0.5); }

  double size_;
  Vector edges_;
};

// The last bin whose lower edge is not above p.
Index quantile_bin(const Eigen::Ref<const Vector>& edges, double p) {
  const double* inner = edges.data() + 1;
  return std::upper_bound(inner, inner + edges.size() - 2, p) - inner;
}

// Lower edges of the bins of equal weight, edges[0] = 0 and edges[B] = 1 given.
void cut_at_quantiles(const Samples& samples, const std::vector<double>& p, double total,
                      Eigen::Ref<Vector> edges) {
  const Index n_bins = edges.size() - 1;
  std::vector<Index> order;
  std::vector<double> sorted;
  if (samples.weights) {
    order.resize(p.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](Index a, Index b) {
      return p[static_cast<std::size_t>(a)] < p[static_cast<std::size_t>(b)];
    });
  } else {
    sorted = p;
    std::sort(sorted.begin(), sorted.end());
  }
  const auto value = [&](std::size_t i) {
    return samples.weights ? p[static_cast<std::size_t>(order[i])] : sorted[i];
  };
  double below = 0.0;  // F
  double rank = 0.0;   // weight of the rows before i
  Index bin = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (i > 0 && value(i) > value(i - 1)) below = rank;
    const auto here =
        std::min(static_cast<Index>(static_cast<double>(n_bins) * below / total), n_bins - 1);
    while (bin < here) edges[++bin] = value(i);
    rank += samples.weights ? samples.weights[order[i]] : 1.0;
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
  const double total = total_weight(samples);
  parallel.each(groups, [&] {
    return [&, p = std::vector<double>(static_cast<std::size_t>(samples.n())),
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
      cut_at_quantiles(samples, p, total, edges.col(group));
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
  Table(Index n_bins_, Index groups)
      : n_bins(n_bins_), cells(static_cast<std::size_t>(2 * n_bins_ * groups)) {}

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

// Adds a bin of weight `weight`, |sum w (y - q)| in three norms, |sum w y|^2 or its like.
void add_gap(Gaps& gaps, double total, double weight, double l1, double l2_squared, double max,
             double variance) {
  const double share = weight / total;
  const double squared = l2_squared / (weight * weight);
  gaps.l1 += l1 / total;
  gaps.l2_squared += share * squared;
  gaps.max = std::max(gaps.max, max / weight);
  gaps.refinement += share * variance;
  gaps.debias += share * (weight > 1.0 ? variance / (weight - 1.0) : squared);
}

}  // namespace

ScalarBins ece_scalar(const Samples& samples, Variant variant, Strategy strategy, Index n_bins,
                      double sum_tolerance, Parallel& parallel) {
  const Index groups = variant == Variant::kTopLabel ? 1 : samples.m();
  ScalarBins bins;
  parallel.span(0.0, strategy == Strategy::kQuantile ? 0.7 : 0.0);
  bins.edges = make_edges(samples, variant, strategy, n_bins, groups, parallel);
  parallel.span(strategy == Strategy::kQuantile ? 0.7 : 0.0, 1.0);

  // At most kTasks tables, each over its own rows, added in order: a table costs memory.
  constexpr Index kTasks = 64;
  const Index panels = Panels::count(samples.n());
  const Index panels_per_task =
      std::max<Index>(8 * kBlock / kPanel, (panels + kTasks - 1) / kTasks);
  std::vector<Table> tables(
      static_cast<std::size_t>((panels + panels_per_task - 1) / panels_per_task));
  const UniformBins uniform(n_bins);
  parallel.each(static_cast<Index>(tables.size()), [&] {
    return [&, panel = ScalarPanel(samples, variant),
            inspector = Inspector(samples, sum_tolerance)](Index task) mutable {
      Table table(n_bins, groups);
      Report& report = table.report;
      report.smallest_label = report.largest_label =
          samples.labels[task * panels_per_task * kPanel];
      const Index last = std::min((task + 1) * panels_per_task, panels);
      for (Index k = task * panels_per_task; k < last; ++k) {
        panel.load(k * kPanel, std::min(kPanel, samples.n() - k * kPanel));
        inspector.look(panel.panel(), panel.begin, panel.rows, report);
        if (!report.clean()) continue;  // the bins of such numbers might not exist
        for (Index g = 0; g < groups; ++g) {
          if (strategy == Strategy::kUniform)
            table.add(samples, panel, g, uniform);
          else
            table.add(samples, panel, g, [&](const double* p, Index rows, std::int32_t* at) {
              for (Index i = 0; i < rows; ++i)
                at[i] = static_cast<std::int32_t>(quantile_bin(bins.edges.col(g), p[i]));
            });
        }
        parallel.tick();
      }
      tables[static_cast<std::size_t>(task)] = std::move(table);
    };
  });
  bins.weight = bins.prob = bins.hits = bins.count = Matrix::Zero(n_bins, groups);
  bins.report = tables.front().report;
  for (const Table& table : tables) {
    if (&table != &tables.front()) bins.report.merge(table.report);
    for (std::size_t k = 0; k < table.cells.size(); ++k) {
      const Table::Cell& cell = table.cells[k];
      const auto at = static_cast<Index>(k / 2);  // both are column-major
      const double weight = samples.weights ? cell.weight : cell.count;
      bins.weight.data()[at] += weight;
      bins.prob.data()[at] += cell.prob;
      if (k % 2 == 1) bins.hits.data()[at] += weight;
      bins.count.data()[at] += cell.count;
    }
  }

  bins.edges = bins.edges.cwiseMin(1.0);  // bins that nothing can fall into lie above 1
  const double total = total_weight(samples);
  bins.gaps.resize(static_cast<std::size_t>(groups));
  for (Index g = 0; g < groups; ++g)
    for (Index b = 0; b < n_bins; ++b) {
      if (bins.count(b, g) == 0.0) continue;
      const double gap = std::abs(bins.hits(b, g) - bins.prob(b, g));
      const double rate = bins.hits(b, g) / bins.weight(b, g);
      add_gap(bins.gaps[static_cast<std::size_t>(g)], total, bins.weight(b, g), gap, gap * gap, gap,
              rate * (1.0 - rate));
    }
  return bins;
}

namespace {

// 128 bits that stand for the bin of a row: equal bins have equal keys, different ones differ but
// for a chance of about n^2 2^-129.
struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

struct OccupiedBin {
  Key key;
  Index first_row;
  Index sums = -1;  // of a bin with one row there are none: the row is read again
  std::int64_t count = 0;
  double weight = 0.0;
};

// Occupied bins by open addressing, in order of appearance.
class BinMap {
 public:
  OccupiedBin& at(const Key& key, Index row) {
    if (2 * (bins.size() + 1) > slots_.size()) grow();
    std::size_t slot = find(key);
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<Index>(bins.size());
      OccupiedBin bin;
      bin.key = key;
      bin.first_row = row;
      bins.push_back(bin);
    }
    return bins[static_cast<std::size_t>(slots_[slot])];
  }

  std::vector<OccupiedBin> bins;

 private:
  std::size_t find(const Key& key) const {
    std::size_t slot = key.low & (slots_.size() - 1);
    while (slots_[slot] >= 0) {
      const Key& other = bins[static_cast<std::size_t>(slots_[slot])].key;
      if (other.low == key.low && other.high == key.high) break;
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(1024, 2 * slots_.size()), -1);
    for (std::size_t i = 0; i < bins.size(); ++i) slots_[find(bins[i].key)] = static_cast<Index>(i);
  }

  std::vector<Index> slots_;  // a power of two of them
};

// A key is the sum of random numbers that belong to (class, bin); bin 0, the commonest, has none.
void add_keys(const Eigen::Ref<const Matrix>& q, Index n_bins, std::vector<Key>& keys) {
  const UniformBins uniform(n_bins);
  if (n_bins == 1) return;  // where 1.0 is in bin 0, too
  const double first_edge = 1.0 / static_cast<double>(n_bins);
  for (Index j = 0; j < q.cols(); ++j) {
    const double* column = q.col(j).data();
    for (Index i = 0; i < q.rows(); ++i) {
      if (column[i] < first_edge) continue;
      const auto number = static_cast<std::uint64_t>(j * n_bins + uniform(column[i]));
      SplitMix64 random(number * 0xd1342543de82ef95ULL);
      Key& key = keys[static_cast<std::size_t>(i)];
      key.low += random.bits();
      key.high += random.bits();
    }
  }
}

}  // namespace

SimplexBins ece_simplex(const Samples& samples, Index n_bins, Parallel& parallel) {
  const Index m = samples.m();
  BinMap map;
  std::vector<Vector> sums;  // [sum w q | sum w y] of the bins with more than one row
  const auto add_row = [&](Vector& sum, const auto& q, Index row) {
    const double w = samples.weight(row);
    sum.head(m) += w * q.transpose();
    sum[m + samples.labels[row]] += w;
  };
  parallel.span(0.0, 0.8);
  parallel.each((samples.n() + kBlock - 1) / kBlock, [&] {
    return [&, q_block = Matrix(kBlock, m), keys = std::vector<Key>(kBlock),
            first = Matrix(1, m)](Index task) mutable {
      const Index begin = task * kBlock;
      const Index rows = std::min(kBlock, samples.n() - begin);
      MatrixRef q = q_block.topRows(rows);
      samples.probs.load(begin, rows, q);
      std::fill(keys.begin(), keys.end(), Key());
      add_keys(q, n_bins, keys);
      parallel.in_turn(task, [&] {
        for (Index i = 0; i < rows; ++i) {
          OccupiedBin& bin = map.at(keys[static_cast<std::size_t>(i)], begin + i);
          ++bin.count;
          bin.weight += samples.weight(begin + i);
          if (bin.count == 1) continue;
          if (bin.sums < 0) {
            bin.sums = static_cast<Index>(sums.size());
            sums.push_back(Vector::Zero(2 * m));
            samples.probs.load(bin.first_row, 1, first);
            add_row(sums.back(), first.row(0), bin.first_row);
          }
          add_row(sums[static_cast<std::size_t>(bin.sums)], q.row(i), begin + i);
        }
      });
    };
  });

  SimplexBins result;
  const double total = total_weight(samples);
  const auto n_occupied = static_cast<Index>(map.bins.size());
  parallel.span(0.8, 1.0);
  parallel.each((n_occupied + kBlock - 1) / kBlock, [&] {
    return [&, row = Matrix(1, m), sum = Vector(2 * m)](Index task) mutable {
      Gaps gaps;
      for (Index k = task * kBlock; k < std::min((task + 1) * kBlock, n_occupied); ++k) {
        const OccupiedBin& bin = map.bins[static_cast<std::size_t>(k)];
        if (bin.sums < 0) {
          samples.probs.load(bin.first_row, 1, row);
          sum.setZero();
          add_row(sum, row.row(0), bin.first_row);
        } else {
          sum = sums[static_cast<std::size_t>(bin.sums)];
        }
        const auto labels = sum.tail(m).array();
        const double variance = 1.0 - (labels / bin.weight).square().sum();
        sum.head(m) -= sum.tail(m);
        const auto gap = sum.head(m);
        add_gap(gaps, total, bin.weight, gap.lpNorm<1>(), gap.squaredNorm(),
                gap.lpNorm<Eigen::Infinity>(), variance);
      }
      parallel.in_turn(task, [&] {
        result.gaps.l1 += gaps.l1;
        result.gaps.l2_squared += gaps.l2_squared;
        result.gaps.max = std::max(result.gaps.max, gaps.max);
        result.gaps.refinement += gaps.refinement;
        result.gaps.debias += gaps.debias;
      });
    };
  });
  result.counts.reserve(map.bins.size());
  for (const OccupiedBin& bin : map.bins) result.counts.push_back(bin.count);
  return result;
}

}  // namespace ckce
