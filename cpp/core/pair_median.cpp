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

// distances[r] = that of row r of panel a and row r + shift of panel b
template <class Distance>
void distances_of_panels(const double* a, const double* b, Index shift, Index m,
                         double* distances) {
  using namespace Eigen::internal;
  for (Index r = 0; r + shift < kPanel; r += kWidth) {
    Packet sum = pset1<Packet>(0.0);
    for (Index f = 0; f < m; ++f)
      sum = Distance::add(sum, ploadu<Packet>(a + f * kPanel + r),
                          ploadu<Packet>(b + f * kPanel + r + shift));
    pstoreu(distances + r, sum);
  }
}

// One pair in 128 of every two panels, and as many within one, so that a set in order of its
// classes is sampled evenly; more where panels are few.
template <class Distance>
std::vector<double> sample_pairs(const Panels& q) {
  const Index shifts = q.count() == 1 ? 8 : q.count() < 4 ? 4 : 2;
  const Index step = kPanel / shifts;
  std::vector<double> sample;
  double distances[kPanel];
  const auto take = [&](Index i, Index j, Index shift, Index count) {
    distances_of_panels<Distance>(q.panel(i).data(), q.panel(j).data(), shift, q.width(),
                                  distances);
    sample.insert(sample.end(), distances, distances + std::max<Index>(count, 0));
  };
  for (Index i = 0; i < q.count(); ++i)
    for (Index shift = step; shift < kPanel; shift += step) {
      for (Index j = 0; j < i; ++j)
        take(i, j, shift - step, std::min(q.rows(i), kPanel - shift + step));
      take(i, i, shift, q.rows(i) - shift);
    }
  return sample;
}

// The elements of rank k and, if it is asked for, of the next one.
std::pair<double, double> of_ranks(std::vector<double> values, Index k, bool next) {
  const auto at = values.begin() + k;
  std::nth_element(values.begin(), at, values.end());
  return {*at, next ? *std::min_element(at + 1, values.end()) : *at};
}

// The same of values in [low, high]; of many by counting into bins.
std::pair<double, double> of_ranks(const std::vector<double>& values, Index k, bool next,
                                   double low, double high) {
  constexpr std::size_t kBins = 1024;
  constexpr std::size_t kFew = 128;
  if (values.size() < kFew) return of_ranks(values, k, next);
  const double scale = static_cast<double>(kBins - 1) / (high - low);
  const bool even = std::isfinite(scale);
  const auto bin = [&](double value) {
    return even ? static_cast<std::size_t>((value - low) * scale) : 0;
  };
  std::vector<Index> counts(kBins, 0);
  for (const double value : values) ++counts[bin(value)];
  std::size_t first = 0;
  while (k >= counts[first]) k -= counts[first++];
  std::size_t last = first;
  for (Index left = counts[first]; left <= k + next; left += counts[last]) ++last;
  std::vector<double> within;
  for (const double value : values)
    if (const std::size_t at = bin(value); at == first || at == last) within.push_back(value);
  return of_ranks(std::move(within), k, next);
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
  const auto of_rank = [&](Index k) { return of_ranks(sample, k, false, 0.0, largest).first; };
  if (middle - reach >= 0) bracket.low = of_rank(middle - reach);
  if (middle + reach < size) bracket.high = of_rank(middle + reach);
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
    const Index rank = first - found.below - found.at_low;  // among those within
    const Index next = rank + second - first;
    const double most = std::min(bracket.high, found.largest);
    const auto of_rank = [&](Index k) {
      if (k < 0) return bracket.low;
      if (k >= inside) return bracket.high;
      return of_ranks(found.within, k, false, bracket.low, most).first;
    };
    const auto [low, high] = rank >= 0 && next < inside
                                 ? of_ranks(found.within, rank, next > rank, bracket.low, most)
                                 : std::make_pair(of_rank(rank), of_rank(next));
    return {0.5 * (plain(low) + plain(high)), found.largest};
  }
}

template PairMedian pair_median<SquaredL2>(const std::vector<Panels>&, double, double (*)(double),
                                           Parallel&);
template PairMedian pair_median<L1>(const std::vector<Panels>&, double, double (*)(double),
                                    Parallel&);

}  // namespace ckce
