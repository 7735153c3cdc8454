#include "core/bandwidth.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "core/base/panels.hpp"
#include "core/base/random.hpp"
#include "core/kernels/distances.hpp"
#include "core/pair_median.hpp"

namespace ckce {
namespace {

// Distinct integers below `count`, ascending (Floyd's algorithm).
std::vector<Index> draw_rows(Index count, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::unordered_set<Index> drawn;
  for (Index k = count - kMedianRows; k < count; ++k) {
    const auto row = static_cast<Index>(random.below(static_cast<std::uint64_t>(k) + 1));
    drawn.insert(drawn.count(row) ? k : row);
  }
  std::vector<Index> rows(drawn.begin(), drawn.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Rows of Q that enter the median, and how often.
struct Chosen {
  Panels q;
  Vector counts;
};

Chosen choose(const Samples& samples, std::uint64_t seed) {
  const Index n = samples.n();
  const double copies = std::max(std::ceil(total_weight(samples)), static_cast<double>(n));
  const auto probability = [](double p) { return still_probability(p); };
  Chosen chosen;
  if (copies <= static_cast<double>(kMedianRows)) {
    chosen.counts = weights_of(samples, 0, n);
    chosen.q = Panels(n, samples.m());
    for (Index i = 0; i < chosen.q.count(); ++i) {
      auto q = chosen.q.panel(i);
      samples.probs.load(i * kPanel, chosen.q.rows(i), q);
      q = q.unaryExpr(probability);
    }
    return chosen;
  }
  // Drawn among the copies, so that weights and repeated rows give the same sample.
  std::vector<Index> rows = draw_rows(static_cast<Index>(copies), seed);
  if (samples.weights) {
    std::vector<double> ends(as_size(n));
    double end = 0.0;
    for (Index i = 0; i < n; ++i) ends[as_size(i)] = (end += samples.weights[i]);
    for (Index& row : rows) {
      const double at = (static_cast<double>(row) + 0.5) * (end / copies);
      row = std::upper_bound(ends.begin(), ends.end() - 1, at) - ends.begin();
    }
  }
  chosen.counts = Vector::Ones(kMedianRows);
  chosen.q = Panels(kMedianRows, samples.m());
  Matrix row(1, samples.m());
  for (Index i = 0; i < kMedianRows; ++i) {
    samples.probs.load(rows[as_size(i)], 1, row);
    chosen.q.row(i) = row.unaryExpr(probability);
  }
  return chosen;
}

// Distances of the pairs of chosen rows (squared for L2), row after row of the lower triangle.
template <class Distance>
void pair_distances(const Panels& q, double* out, Parallel& parallel) {
  parallel.each(q.count(), [&] {
    return [&, tile = Matrix(kPanel, kPanel)](Index i) mutable {
      const Index first = i * kPanel;
      const Index rows = std::min(kPanel, q.n() - first);
      for (Index j = 0; j <= i; ++j) {
        tile_of<Distance>(q.panel(j).data(), q.panel(i).data(), q.width(), tile,
                          [](Index, double*) {});
        for (Index a = 0; a < rows; ++a) {
          const Index row = first + a;
          double* row_out = out + row * (row - 1) / 2 + j * kPanel;
          std::copy_n(&tile(0, a), j < i ? kPanel : a, row_out);
        }
      }
    };
  });
}

struct Copies {
  double value;
  double count;
};

// A value's bin among those from `least` on.
struct Bins {
  static constexpr std::size_t kCount = 4096;
  double least;
  double scale;

  Bins(double least_, double most)
      : least(least_), scale(static_cast<double>(kCount - 1) / (most - least_)) {}
  std::size_t operator()(double value) const {
    return static_cast<std::size_t>((value - least) * scale);
  }
};

// Finds the two middle values of copies, mostly one and the same, by counting them into bins and
// looking into one of these, which may be cut into bins again.
struct Middle {
  double half;         // of all copies
  double below = 0.0;  // copies of smaller values than those that are left
  std::size_t chosen = 0;
  std::size_t next = 0;  // that holds any: the middle may lie between the two

  void choose(const std::vector<double>& shares) {
    chosen = 0;
    while (chosen + 1 < Bins::kCount && below + shares[chosen] < half) below += shares[chosen++];
    next = chosen + 1;
    while (next < Bins::kCount && shares[next] == 0.0) ++next;
  }

  std::pair<double, double> among(std::vector<Copies> left) {
    const auto smaller = [](const Copies& a, const Copies& b) { return a.value < b.value; };
    while (left.size() > Bins::kCount) {
      const auto [least, most] = std::minmax_element(left.begin(), left.end(), smaller);
      const Bins bin(least->value, most->value);
      if (!std::isfinite(bin.scale)) break;  // all the same, or too near to be told apart
      std::vector<double> shares(Bins::kCount, 0.0);
      for (const Copies& each : left) shares[bin(each.value)] += each.count;
      choose(shares);
      const auto outside = [&](const Copies& each) {
        const std::size_t at = bin(each.value);
        return at != chosen && at != next;
      };
      const auto end = std::remove_if(left.begin(), left.end(), outside);
      if (end == left.end()) break;
      left.erase(end, left.end());
    }
    std::sort(left.begin(), left.end(), smaller);
    for (std::size_t i = 0; i + 1 < left.size(); ++i) {
      below += left[i].count;
      if (below > half) return {left[i].value, left[i].value};
      if (below == half) return {left[i].value, left[i + 1].value};
    }
    return {left.back().value, left.back().value};
  }
};

struct Distances {
  std::vector<double> values;
  std::vector<double> counts;
  bool squared;

  double largest() const {  // by Eigen, which vectorises it
    return Eigen::Map<const Vector>(values.data(), static_cast<Index>(values.size())).maxCoeff();
  }

  // The median of the distances above `floor` (all of them for a negative floor); 0 if none is.
  double median(double floor) const {
    const auto plain = [&](double value) { return squared ? std::sqrt(value) : value; };
    const Bins bin(std::max(floor, 0.0), largest());
    std::vector<double> shares(Bins::kCount, 0.0);
    double total = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] > floor && std::isfinite(bin.scale)) {
        shares[bin(values[i])] += counts[i];
        total += counts[i];
      }
    if (total == 0.0) return 0.0;  // none above, or all subnormal: no bandwidth
    Middle middle{0.5 * total};
    middle.choose(shares);
    std::vector<Copies> left;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] > floor)
        if (const std::size_t at = bin(values[i]); at == middle.chosen || at == middle.next)
          left.push_back({values[i], counts[i]});
    const auto [low, high] = middle.among(std::move(left));
    return 0.5 * (plain(low) + plain(high));
  }
};

// Where every pair counts once.
MedianDistance plain_median(const std::vector<Samples>& groups, Norm norm, double share,
                            std::uint64_t seed, Parallel& parallel) {
  std::vector<Panels> sets;
  for (const Samples& group : groups) sets.push_back(choose(group, seed).q);
  if (norm == Norm::kL1) {
    const auto [value, largest] =
        pair_median<L1>(sets, share, [](double d) { return d; }, parallel);
    return {value, largest};
  }
  const auto [value, largest] =
      pair_median<SquaredL2>(sets, share, [](double d) { return std::sqrt(d); }, parallel);
  return {value, std::sqrt(largest)};
}

}  // namespace

MedianDistance median_distance(const std::vector<Samples>& groups, Norm norm, Counted counted,
                               std::uint64_t seed, Parallel& parallel) {
  const double share = norm == Norm::kL2 ? kApartShare * kApartShare : kApartShare;
  if (std::none_of(groups.begin(), groups.end(),
                   [](const Samples& group) { return group.weights != nullptr; }))
    return plain_median(groups, norm, counted == Counted::kAll ? -1.0 : share, seed, parallel);
  Distances distances;
  distances.squared = norm == Norm::kL2;
  for (const Samples& group : groups) {
    const Chosen chosen = choose(group, seed);
    const Index n = chosen.q.n();
    const std::size_t start = distances.values.size();
    distances.values.resize(start + static_cast<std::size_t>(n * (n - 1) / 2));
    double* out = distances.values.data() + start;
    if (norm == Norm::kL2)
      pair_distances<SquaredL2>(chosen.q, out, parallel);
    else
      pair_distances<L1>(chosen.q, out, parallel);
    distances.counts.reserve(distances.values.size() + as_size(n));
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < i; ++j) distances.counts.push_back(chosen.counts[i] * chosen.counts[j]);
    for (Index i = 0; i < n; ++i) {
      if (chosen.counts[i] <= 1.0) continue;
      distances.values.push_back(0.0);
      distances.counts.push_back(0.5 * chosen.counts[i] * (chosen.counts[i] - 1.0));
    }
  }
  if (distances.values.empty()) return {0.0, 0.0};
  const double largest = distances.largest();
  const double floor = counted == Counted::kAll ? -1.0 : share * largest;
  return {distances.median(floor), norm == Norm::kL2 ? std::sqrt(largest) : largest};
}

namespace {

// A column in ascending order, and how often each value counts.
struct Column {
  std::vector<double> values;
  std::vector<double> counts;

  // The number of pairs of copies whose difference is at most `limit` >= 0.
  double pairs_within(double limit) const {
    double pairs = 0.0;
    double window = 0.0;  // copies of values[first .. i)
    std::size_t first = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      while (values[i] - values[first] > limit) window -= counts[first++];
      pairs += counts[i] * window + 0.5 * counts[i] * std::max(counts[i] - 1.0, 0.0);
      window += counts[i];
    }
    return pairs;
  }
};

double bits_to_double(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace

MedianDistance class_wise_median_distance(const Samples& samples, Norm norm, Counted counted,
                                          std::uint64_t seed, Parallel& parallel) {
  const Chosen chosen = choose(samples, seed);
  const Index n = chosen.q.n();
  std::vector<Column> columns(static_cast<std::size_t>(samples.m()));
  parallel.each(samples.m(), [&] {
    return [&, order = std::vector<std::pair<double, double>>(as_size(n))](Index j) mutable {
      for (Index i = 0; i < n; ++i) order[as_size(i)] = {chosen.q.row(i)[j], chosen.counts[i]};
      std::sort(order.begin(), order.end());
      Column& column = columns[as_size(j)];
      for (const auto& [value, count] : order) {
        column.values.push_back(value);
        column.counts.push_back(count);
      }
    };
  });
  const auto pairs_within = [&](double limit) {
    double pairs = 0.0;
    parallel.each(samples.m(), [&] {
      return [&](Index j) {
        const double within = columns[as_size(j)].pairs_within(limit);
        parallel.in_turn(j, [&] { pairs += within; });
      };
    });
    return pairs;
  };
  // The smallest double at which `enough` holds, by bisection over the bits (they are ordered).
  const auto smallest = [&](auto enough) {
    std::uint64_t low = 0;
    std::uint64_t high = 0x4010000000000000ULL;  // 4.0, above every difference
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (enough(pairs_within(bits_to_double(middle))))
        high = middle;
      else
        low = middle + 1;
    }
    return bits_to_double(low);
  };
  const double all = pairs_within(4.0);
  // The mean of the two middle differences among those above the first `below`.
  const auto median = [&](double below) {
    const double half = below + 0.5 * (all - below);
    return 0.5 * (smallest([&](double pairs) { return pairs >= half; }) +
                  smallest([&](double pairs) { return pairs > half; }));
  };
  const double scale = norm == Norm::kL1 ? 2.0 : std::sqrt(2.0);  // |(-d, d)|
  if (all == 0.0) return {0.0, 0.0};
  double largest = 0.0;
  for (const Column& column : columns)
    largest = std::max(largest, column.values.back() - column.values.front());
  const double near = counted == Counted::kAll ? 0.0 : pairs_within(kApartShare * largest);
  return {near < all ? scale * median(near) : 0.0, scale * largest};
}

}  // namespace ckce
