#include "core/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/sizes.hpp"

namespace ckce {
namespace {

constexpr Index kGroups = 64;       // column j is in group j % kGroups
constexpr Index kAtOnce = 32;       // entries that are compared with the bar at a time
constexpr Index kFewEntries = 128;  // up to here comparing all pairs beats sorting

// The k largest entries of a row. The k-th largest of the maxima of groups of columns is a bar that
// at least k entries reach, and rarely many more: these are the candidates. If they are too many
// all the same, those behind the k-th are dropped, and later ones must exceed it.
template <class T>
class Selection {
 public:
  explicit Selection(Index k)
      : k_(k),
        capacity_(std::max(2 * k, 2 * kFewEntries)),
        values_(as_size(capacity_ + kAtOnce)),
        columns_(as_size(capacity_ + kAtOnce)),
        ranks_(as_size(kFewEntries)),
        placed_(as_size(std::max(k, kFewEntries))) {}

  // `sum` is not finite if an entry is not.
  void select(const T* row, Index m, double& sum, double& smallest) {
    size_ = 0;
    in_column_order_ = true;
    const T bar = look(row, m, sum, smallest);
    Index j = 0;
    bar_ = bar;
    for (; j + kAtOnce <= m; j += kAtOnce) {
      Bits reach = reaching(row + j, bar_);
      for (; reach != 0; reach &= reach - 1) add(row, j + lowest_bit(reach));
      if (size_ > capacity_) drop();
    }
    for (; j < m; ++j)
      if (row[j] >= bar_) add(row, j);
  }

  // Writes k + 1 entries, and tells the rank of a label.
  Index write(std::int64_t label, double* kept) {
    if (in_column_order_ && size_ <= kFewEntries)
      place();
    else
      sort();
    double rest = 1.0;
    for (Index j = 0; j < k_; ++j) {
      kept[j] = static_cast<double>(placed_[as_size(j)]);
      rest -= kept[j];
    }
    kept[k_] = std::max(rest, 0.0);
    Index rank = k_;
    for (Index i = 0; i < size_; ++i)
      if (columns_[as_size(i)] == label) rank = in_column_order_ ? ranks_[as_size(i)] : i;
    return std::min(rank, k_);
  }

 private:
  using Count = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Bits = std::make_unsigned_t<Count>;
  using Groups = Eigen::Array<T, kGroups, 1>;

  // Sum and smallest entry; a bar that at least k entries reach.
  T look(const T* row, Index m, double& sum, double& smallest) {
    Eigen::Array<double, kGroups, 1> total = Eigen::Array<double, kGroups, 1>::Zero();
    Groups least = Groups::Constant(row[0]);
    Groups best = Groups::Constant(-std::numeric_limits<T>::infinity());
    Index j = 0;
    for (; j + kGroups <= m; j += kGroups) {
      const Eigen::Map<const Groups> entries(row + j);
      total += entries.template cast<double>();
      least = least.min(entries);
      best = best.max(entries);
    }
    for (Index i = 0; j + i < m; ++i) {
      total[i] += static_cast<double>(row[j + i]);
      least[i] = std::min(least[i], row[j + i]);
      best[i] = std::max(best[i], row[j + i]);
    }
    sum = total.sum();
    smallest = static_cast<double>(least.minCoeff());
    if (m <= kGroups || k_ > kGroups) return -std::numeric_limits<T>::infinity();
    Index groups = kGroups;
    if (k_ <= 3 * kGroups / 8) {  // fewer are as good, and a quarter of the work
      groups = kGroups / 2;
      best.template head<kGroups / 2>() =
          best.template head<kGroups / 2>().max(best.template tail<kGroups / 2>());
    }
    count_ranks(best.data(), groups);
    T bar = -std::numeric_limits<T>::infinity();
    for (Index i = 0; i < groups; ++i)
      if (ranks_[as_size(i)] == k_ - 1) bar = best[i];
    return bar;
  }

  // Bit i: entry i of kAtOnce reaches the bar.
  static Bits reaching(const T* entries, T bar) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>) {
      const __m512 least = _mm512_set1_ps(bar);
      const auto half = [&](Index i) -> Bits {
        return _mm512_cmp_ps_mask(_mm512_loadu_ps(entries + i), least, _CMP_GE_OQ);
      };
      return half(0) | half(16) << 16;
    }
#endif
    Bits reach = 0;
    for (Index i = 0; i < kAtOnce; ++i) reach |= entries[i] >= bar ? Bits{1} << i : Bits{0};
    return reach;
  }

  static Index lowest_bit(Bits bits) {
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    Index i = 0;
    while (!(bits >> i & 1)) ++i;
    return i;
#endif
  }

  void add(const T* row, Index j) {
    values_[as_size(size_)] = row[j];
    columns_[as_size(size_)] = j;
    ++size_;
  }

  bool before(Index a, Index b) const {
    const T x = values_[as_size(a)];
    const T y = values_[as_size(b)];
    return x > y || (x == y && columns_[as_size(a)] < columns_[as_size(b)]);
  }

  // The order of the candidates as far as the k-th.
  std::vector<Index> best_first(bool sorted) const {
    std::vector<Index> order(as_size(size_));
    for (Index i = 0; i < size_; ++i) order[as_size(i)] = i;
    const auto less = [&](Index a, Index b) { return before(a, b); };
    const Index kept = std::min(k_, size_);
    if (kept < size_) std::nth_element(order.begin(), order.begin() + kept, order.end(), less);
    order.resize(as_size(kept));
    if (sorted) std::sort(order.begin(), order.end(), less);
    return order;
  }

  void take(const std::vector<Index>& order) {
    std::vector<T> values(order.size());
    std::vector<Index> columns(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      values[i] = values_[as_size(order[i])];
      columns[i] = columns_[as_size(order[i])];
    }
    std::copy(values.begin(), values.end(), values_.begin());
    std::copy(columns.begin(), columns.end(), columns_.begin());
    size_ = static_cast<Index>(order.size());
    in_column_order_ = false;
  }

  void drop() {
    take(best_first(false));
    const T least = *std::min_element(values_.begin(), values_.begin() + size_);
    bar_ = std::nextafter(least, std::numeric_limits<T>::infinity());  // an equal one is too late
  }

  // ranks_[i]: how many come before i; of equal ones the first does. O(count^2), without branches
  void count_ranks(const T* values, Index count) {
    Count* ranks = ranks_.data();
    for (Index j = 0; j < count; ++j) {
      const T x = values[j];
      Count behind = 0;
      for (Index i = 0; i < j; ++i) {
        const auto larger = static_cast<Count>(x > values[i]);
        ranks[i] += larger;
        behind += larger;
      }
      ranks[j] = static_cast<Count>(j) - behind;
    }
  }

  // A row whose NaN left fewer than k candidates is refused by its report.
  void place() {
    count_ranks(values_.data(), size_);
    std::fill(placed_.begin() + size_, placed_.begin() + std::max(k_, size_), T(0));
    for (Index i = 0; i < size_; ++i) placed_[as_size(ranks_[as_size(i)])] = values_[as_size(i)];
  }

  void sort() {
    take(best_first(true));
    std::fill(placed_.begin(), placed_.end(), T(0));
    std::copy(values_.begin(), values_.begin() + size_, placed_.begin());
  }

  Index k_;
  Index capacity_;
  Index size_ = 0;
  T bar_ = T(0);
  bool in_column_order_ = true;
  std::vector<T> values_;
  std::vector<Index> columns_;
  std::vector<Count> ranks_;
  std::vector<T> placed_;
};

template <class T>
constexpr Dtype kDtype = std::is_same_v<T, float> ? Dtype::kFloat32 : Dtype::kFloat64;

// Rows of neighbouring T in memory, or copies of a few rows at a time.
template <class T>
class Reader {
 public:
  explicit Reader(const Probs& probs) : probs_(probs), in_rows_(lies_in_rows(probs)) {
    if (in_rows_) return;
    strip_.resize(kStripRows, probs.m);
    row_.resize(probs.m);
  }

  static bool lies_in_rows(const Probs& probs) {
    constexpr auto kSize = static_cast<Index>(sizeof(T));
    return probs.dtype == kDtype<T> && probs.col_stride == kSize && probs.row_stride % kSize == 0 &&
           reinterpret_cast<std::uintptr_t>(probs.data) % sizeof(T) == 0;
  }

  const T* row(Index i) {
    if (in_rows_) return reinterpret_cast<const T*>(probs_.data + i * probs_.row_stride);
    if (i < begin_ || i >= begin_ + kStripRows) {
      begin_ = i;
      const Index rows = std::min(kStripRows, probs_.n - i);
      probs_.load(begin_, rows, strip_.topRows(rows));
    }
    row_ = strip_.row(i - begin_);
    return row_.data();
  }

  // Row i is read soon: memory delivers it while the row before is ranked.
  void expect(Index i) const {
#if defined(__GNUC__)
    if (!in_rows_ || i >= probs_.n || probs_.m > kExpected) return;
    const char* row = probs_.data + i * probs_.row_stride;
    for (Index byte = 0; byte < probs_.m * static_cast<Index>(sizeof(T)); byte += 64)
      __builtin_prefetch(row + byte);
#else
    static_cast<void>(i);
#endif
  }

 private:
  static constexpr Index kExpected = 2048;  // entries of a row that stay in L1
  using Strip = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
  const Probs& probs_;
  bool in_rows_;
  Strip strip_;
  Eigen::Matrix<T, Eigen::Dynamic, 1> row_;
  Index begin_ = std::numeric_limits<Index>::min() / 2;
};

template <class T>
Report top_k_as(const Samples& samples, Index k, double sum_tolerance, double* kept,
                std::int64_t* ranks, Parallel& parallel) {
  Report report;
  const Index n = samples.n();
  if (n > 0) report.smallest_label = report.largest_label = samples.labels[0];
  expect_use(kept, sizeof(double) * as_size(n * (k + 1)));
  parallel.each(count_pieces(n, kBlock), [&] {
    return [&, selection = Selection<T>(k), reader = Reader<T>(samples.probs),
            inspector = Inspector(samples, sum_tolerance)](Index task) mutable {
      Report found;
      found.smallest_label = found.largest_label = samples.labels[task * kBlock];
      double sum[kPanel];
      double smallest[kPanel];
      const Index last = std::min((task + 1) * kBlock, n);
      for (Index begin = task * kBlock; begin < last; begin += kPanel) {
        const Index rows = std::min(kPanel, last - begin);
        for (Index i = 0; i < rows; ++i) {
          const Index row = begin + i;
          reader.expect(row + 1);
          selection.select(reader.row(row), samples.m(), sum[i], smallest[i]);
          ranks[row] = selection.write(samples.labels[row], kept + row * (k + 1));
        }
        inspector.look(sum, smallest, begin, rows, found);
        parallel.tick();
      }
      parallel.in_turn(task, [&] { report.merge(found); });
    };
  });
  return report;
}

}  // namespace

Report top_k(const Samples& samples, Index k, double sum_tolerance, double* kept,
             std::int64_t* ranks, Parallel& parallel) {
  const bool floats = Reader<float>::lies_in_rows(samples.probs);
  return (floats ? top_k_as<float> : top_k_as<double>)(samples, k, sum_tolerance, kept, ranks,
                                                       parallel);
}

}  // namespace ckce
