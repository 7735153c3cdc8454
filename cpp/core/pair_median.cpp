#include "core/pair_median.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "core/kernels/distances.hpp"

namespace ckce {
namespace {

// distances[r] = that of row r of panel a and row r of panel b
template <class Distance>
void distances_of_panels(const double* a, const double* b, Index m, double* distances) {
  using namespace Eigen::internal;
  for (Index r = 0; r < kPanel; r += kWidth) {
    Packet sum = pset1<Packet>(0.0);
    for (Index f = 0; f < m; ++f)
      sum = Distance::add(sum, ploadu<Packet>(a + f * kPanel + r),
                          ploadu<Packet>(b + f * kPanel + r));
    pstoreu(distances + r, sum);
  }
}

// One pair in 128 of every two panels, and as many within one, so that a set in order of its
// classes is sampled evenly.
template <class Distance>
std::vector<double> sample_pairs(const Panels& q) {
  constexpr Index kHalf = kPanel / 2;
  std::vector<double> sample;
  double distances[kPanel];
  Matrix turned = Matrix::Zero(kPanel, q.width());
  for (Index i = 0; i < q.count(); ++i) {
    const Index rows = q.rows(i);
    for (Index j = 0; j < i; ++j) {
      distances_of_panels<Distance>(q.panel(i).data(), q.panel(j).data(), q.width(), distances);
      sample.insert(sample.end(), distances, distances + rows);
    }
    turned.topRows(kHalf) = q.panel(i).bottomRows(kHalf);
    distances_of_panels<Distance>(q.panel(i).data(), turned.data(), q.width(), distances);
    sample.insert(sample.end(), distances, distances + std::max<Index>(rows - kHalf, 0));
  }
  return sample;
}

double kth_smallest(std::vector<double> values, Index k) {
  std::nth_element(values.begin(), values.begin() + k, values.end());
  return values[as_size(k)];
}

// The element of rank k of values in [low, high]; of many by counting into bins.
double kth_smallest(const std::vector<double>& values, Index k, double low, double high) {
  constexpr std::size_t kBins = 1024;
  if (values.size() < 2 * kBins) return kth_smallest(values, k);
  const double scale = static_cast<double>(kBins - 1) / (high - low);
  const bool even = std::isfinite(scale);
  const auto bin = [&](double value) {
    return even ? static_cast<std::size_t>((value - low) * scale) : 0;
  };
  std::vector<Index> counts(kBins, 0);
  for (const double value : values) ++counts[bin(value)];
  std::size_t chosen = 0;
  while (k >= counts[chosen]) k -= counts[chosen++];
  std::vector<double> within;
  within.reserve(as_size(counts[chosen]));
  for (const double value : values)
    if (bin(value) == chosen) within.push_back(value);
  return kth_smallest(std::move(within), k);
}

struct Bracket {
  double low = -1.0;  // below all
  double high = std::numeric_limits<double>::infinity();
};

// Around the median of the sampled distances above this share of the largest one, four standard
// deviations either way.
Bracket bracket_of(const std::vector<double>& sample, double share) {
  Bracket bracket;
  if (sample.empty()) return bracket;
  const double largest = *std::max_element(sample.begin(), sample.end());
  const auto size = static_cast<Index>(sample.size());
  const auto near =
      std::count_if(sample.begin(), sample.end(), [&](double d) { return d <= share * largest; });
  const Index middle = near + (size - near) / 2;
  const auto reach = static_cast<Index>(2.0 * std::sqrt(static_cast<double>(size))) + 1;
  if (middle - reach >= 0) bracket.low = kth_smallest(sample, middle - reach, 0.0, largest);
  if (middle + reach < size) bracket.high = kth_smallest(sample, middle + reach, 0.0, largest);
  return bracket;
}

std::int64_t as_integer(double x) { return static_cast<std::int64_t>(bits_of(x)); }

// What a pass over pairs finds. Numbers add up and the order of values does not matter, so the
// result is the same for any number of threads.
struct Found {
  Index below = 0;    // the bracket
  Index at_low = 0;   // equal to its lower end
  Index at_high = 0;  // equal to its upper end, if that is another value
  double largest = 0.0;
  std::vector<double> within;  // the bracket, but for its ends
  std::vector<double> near;    // at most `least`: who counts is known when the largest is

  // Distances are not negative, so their bits as integers are in the same order; the compiler
  // makes vector code of comparisons of integers.
  void add(const double* distances, Index count, const Bracket& bracket, double least) {
    const std::int64_t low = as_integer(bracket.low);
    const std::int64_t high = as_integer(bracket.high);
    const std::int64_t close = as_integer(least);
    std::int64_t less = 0, equal_low = 0, equal_high = 0, small = 0, most = 0;
    for (Index i = 0; i < count; ++i) {
      const std::int64_t d = as_integer(distances[i]);
      less += d < low ? 1 : 0;
      equal_low += d == low ? 1 : 0;
      equal_high += d == high ? 1 : 0;
      small += d <= close ? 1 : 0;
      most = d > most ? d : most;
    }
    below += less;
    at_low += equal_low;
    at_high += high > low ? equal_high : 0;
    largest = std::max(largest, double_of(static_cast<std::uint64_t>(most)));
    double kept[kPanel];
    std::size_t n_kept = 0;
    const std::uint64_t after = bits_of(bracket.low) + 1;  // modulo 2^64, like what follows
    const std::uint64_t between = high > low ? bits_of(bracket.high) - after : 0;
    for (Index i = 0; i < count; ++i) {
      kept[n_kept] = distances[i];
      n_kept += bits_of(distances[i]) - after < between;
    }
    within.insert(within.end(), kept, kept + n_kept);
    if (small > 0)
      std::copy_if(distances, distances + count, std::back_inserter(near),
                   [&](double x) { return x <= least; });
  }

  void add(const Found& other) {
    below += other.below;
    at_low += other.at_low;
    at_high += other.at_high;
    largest = std::max(largest, other.largest);
    within.insert(within.end(), other.within.begin(), other.within.end());
    near.insert(near.end(), other.near.begin(), other.near.end());
  }
};

template <class Distance>
Found look_at_pairs(const std::vector<Panels>& sets, const Bracket& bracket, double least,
                    Parallel& parallel) {
  std::vector<std::pair<const Panels*, Index>> strips;
  for (const Panels& set : sets)
    for (Index i = set.count() - 1; i >= 0; --i) strips.emplace_back(&set, i);  // longest first
  std::vector<Found> parts(strips.size());
  parallel.each(static_cast<Index>(strips.size()), [&] {
    return [&, tile = Matrix(kPanel, kPanel)](Index task) mutable {
      const auto& [set, i] = strips[as_size(task)];
      const Panels& q = *set;
      Found& found = parts[as_size(task)];
      for (Index j = 0; j <= i; ++j)
        tile_of<Distance>(q.panel(j).data(), q.panel(i).data(), q.width(), tile.leftCols(q.rows(i)),
                          [&](Index column, const double* distances) {
                            found.add(distances, j < i ? kPanel : column, bracket, least);
                          });
    };
  });
  Found all;
  for (const Found& part : parts) all.add(part);
  return all;
}

}  // namespace

template <class Distance>
PairMedian pair_median(const std::vector<Panels>& sets, double share, double (*plain)(double),
                       Parallel& parallel) {
  Index pairs = 0;
  std::vector<double> sample;
  for (const Panels& set : sets) {
    pairs += set.n() * (set.n() - 1) / 2;
    const std::vector<double> some = sample_pairs<Distance>(set);
    sample.insert(sample.end(), some.begin(), some.end());
  }
  if (pairs == 0) return {0.0, 0.0};
  Bracket bracket = bracket_of(sample, share);
  for (;; bracket = Bracket()) {
    // No distance of two distributions is above 2 in L1, or squared in L2; rows may sum to more.
    Found found = look_at_pairs<Distance>(sets, bracket, share * 4.0, parallel);
    const double floor = share * found.largest;
    // Subnormal: no distance that a bandwidth could be.
    if (!std::isfinite(4095.0 / found.largest)) return {0.0, found.largest};
    const Index near =
        std::count_if(found.near.begin(), found.near.end(), [&](double d) { return d <= floor; });
    if (near == pairs) return {0.0, found.largest};
    const auto inside = static_cast<Index>(found.within.size());
    const Index first = near + (pairs - near - 1) / 2;
    const Index second = near + (pairs - near) / 2;
    if (first < found.below || second >= found.below + found.at_low + inside + found.at_high)
      continue;  // the sample misled: once more, over all
    const auto of_rank = [&](Index rank) {
      rank -= found.below + found.at_low;
      if (rank < 0) return bracket.low;
      if (rank >= inside) return bracket.high;
      return kth_smallest(found.within, rank, bracket.low, std::min(bracket.high, found.largest));
    };
    return {0.5 * (plain(of_rank(first)) + plain(of_rank(second))), found.largest};
  }
}

template PairMedian pair_median<SquaredL2>(const std::vector<Panels>&, double, double (*)(double),
                                           Parallel&);
template PairMedian pair_median<L1>(const std::vector<Panels>&, double, double (*)(double),
                                    Parallel&);

}  // namespace ckce
