#include "core/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/memory.hpp"
#include "core/base/sizes.hpp"

namespace ckce {
namespace {

constexpr Index kGroups = 64;         // column j is in group j % kGroups
constexpr Index kAtOnce = 64;         // entries that are compared with the bar at a time
constexpr Index kExpectedOfThem = 4;  // reach it; more are rare and cost a branch
constexpr Index kFewEntries = 128;    // up to here comparing all pairs beats sorting

// Bit i: entry i reaches the bar, of as many entries as a register holds.
#if defined(__AVX512F__)
constexpr Index kRegisterBytes = 64;
inline std::uint64_t reach(const float* entries, float bar) {
  return _mm512_cmp_ps_mask(_mm512_loadu_ps(entries), _mm512_set1_ps(bar), _CMP_GE_OQ);
}
inline std::uint64_t reach(const double* entries, double bar) {
  return _mm512_cmp_pd_mask(_mm512_loadu_pd(entries), _mm512_set1_pd(bar), _CMP_GE_OQ);
}
#elif defined(__AVX__)
constexpr Index kRegisterBytes = 32;
inline std::uint64_t reach(const float* entries, float bar) {
  const __m256 mask = _mm256_cmp_ps(_mm256_loadu_ps(entries), _mm256_set1_ps(bar), _CMP_GE_OQ);
  return static_cast<unsigned>(_mm256_movemask_ps(mask));
}
inline std::uint64_t reach(const double* entries, double bar) {
  const __m256d mask = _mm256_cmp_pd(_mm256_loadu_pd(entries), _mm256_set1_pd(bar), _CMP_GE_OQ);
  return static_cast<unsigned>(_mm256_movemask_pd(mask));
}
#elif defined(__SSE2__)
constexpr Index kRegisterBytes = 16;
inline std::uint64_t reach(const float* entries, float bar) {
  return static_cast<unsigned>(
      _mm_movemask_ps(_mm_cmpge_ps(_mm_loadu_ps(entries), _mm_set1_ps(bar))));
}
inline std::uint64_t reach(const double* entries, double bar) {
  return static_cast<unsigned>(
      _mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(entries), _mm_set1_pd(bar))));
}
#else
constexpr Index kRegisterBytes = 8;
template <class T>
std::uint64_t reach(const T* entries, T bar) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kRegisterBytes / sizeof(T); ++i)
    bits |= std::uint64_t{entries[i] >= bar} << i;
  return bits;
}
#endif

// The k largest entries of a row. The k-th largest of the maxima of groups of columns is a bar that
// at least k entries reach, and rarely many more: these are the candidates. If they are too many
// all the same, those behind the k-th are dropped, and later ones must exceed it.
template <class T>
class Selection {
 public:
  explicit Selection(Index k)
      : k_(k),
        capacity_(std::max(2 * k, 2 * kFewEntries)),
        columns_(as_size(capacity_ + kAtOnce + kExpectedOfThem)),
        values_(as_size(kFewEntries)),
        ranks_(as_size(kFewEntries)),
        placed_(as_size(std::max(k, kFewEntries))) {}

  // `sum` is not finite if an entry is not.
  void select(const T* row, Index m, double& sum, double& smallest) {
    row_ = row;
    size_ = 0;
    in_column_order_ = true;
    bar_ = look(row, m, sum, smallest);
    Index j = 0;
    for (; j + kAtOnce <= m; j += kAtOnce) add_reaching(j);
    for (; j < m; ++j)
      if (row[j] >= bar_) columns_[as_size(size_++)] = j;
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
    Count rank = static_cast<Count>(k_);
    for (Index i = 0; i < size_; ++i)
      if (columns_[as_size(i)] == label)
        rank = in_column_order_ ? ranks_[as_size(i)] : static_cast<Count>(i);
    return std::min<Index>(rank, k_);
  }

 private:
  using Count = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Groups = Eigen::Array<T, kGroups, 1>;

#if defined(__GNUC__)
  static constexpr Index kLane = kRegisterBytes / sizeof(T);
  typedef T Lane __attribute__((vector_size(kRegisterBytes)));
  typedef Count Counts __attribute__((vector_size(kRegisterBytes)));
  static Counts ones(Counts mask) { return -mask; }
#else
  static constexpr Index kLane = 1;
  using Lane = T;
  using Counts = Count;
  static Counts ones(bool mask) { return mask; }
#endif
  static_assert(kFewEntries % kLane == 0 && kGroups / 2 % kLane == 0, "whole lanes");

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

  // The candidates among kAtOnce entries from j on.
  void add_reaching(Index j) {
    constexpr Index kStep = kRegisterBytes / static_cast<Index>(sizeof(T));
    std::uint64_t bits = 0;
    for (Index i = 0; i < kAtOnce; i += kStep) bits |= reach(row_ + j + i, bar_) << i;
    Index* next = columns_.data() + size_;
    for (Index i = 0; i < kExpectedOfThem; ++i) {  // without a branch; what is too much is ignored
      const bool any = bits != 0;
      next[i] = j + lowest_bit(bits | std::uint64_t{1} << 63);
      size_ += any;
      bits &= bits - 1;
    }
    for (; bits != 0; bits &= bits - 1) columns_[as_size(size_++)] = j + lowest_bit(bits);
    if (size_ > capacity_) drop();
  }

  static Index lowest_bit(std::uint64_t bits) {
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    Index i = 0;
    while (!(bits >> i & 1)) ++i;
    return i;
#endif
  }

  struct Candidate {
    T value;
    Index column;
  };

  // The first k candidates, in any order or theirs. Values are read once: another thread may write
  // into the row, and their order must hold all the same.
  std::vector<Candidate> keep_best(bool sorted) {
    std::vector<Candidate> best(as_size(size_));
    for (std::size_t i = 0; i < best.size(); ++i) best[i] = {row_[columns_[i]], columns_[i]};
    const auto before = [](const Candidate& a, const Candidate& b) {
      return a.value > b.value || (a.value == b.value && a.column < b.column);
    };
    const Index kept = std::min(k_, size_);
    if (kept < size_) std::nth_element(best.begin(), best.begin() + kept, best.end(), before);
    best.resize(as_size(kept));
    if (sorted) std::sort(best.begin(), best.end(), before);
    for (std::size_t i = 0; i < best.size(); ++i) columns_[i] = best[i].column;
    size_ = kept;
    in_column_order_ = false;
    return best;
  }

  void drop() {
    T least = std::numeric_limits<T>::infinity();
    for (const Candidate& each : keep_best(false)) least = std::min(least, each.value);
    bar_ = std::nextafter(least, std::numeric_limits<T>::infinity());  // an equal one is too late
  }

  // ranks_[i]: how many come before i; of equal ones the first does. O(count^2), without branches.
  // Reads whole lanes: entries behind `count` are -inf.
  void count_ranks(const T* values, Index count) {
    for (Index begin = 0; begin < count; begin += kLane) {
      Lane lane;
      std::memcpy(&lane, values + begin, sizeof lane);
      Count places[kLane];
      for (Index i = 0; i < kLane; ++i) places[i] = static_cast<Count>(begin + i);
      Counts place, ranks{};
      std::memcpy(&place, places, sizeof place);
      const Index end = std::min(begin + kLane, count);
      for (Index j = 0; j < begin; ++j) ranks += ones(values[j] >= lane);
      for (Index j = begin; j < end; ++j)
        ranks += ones((values[j] > lane) | ((values[j] == lane) & (static_cast<Count>(j) < place)));
      for (Index j = end; j < count; ++j) ranks += ones(values[j] > lane);
      std::memcpy(ranks_.data() + begin, &ranks, sizeof ranks);
    }
  }

  // A row whose NaN left fewer than k candidates is refused by its report.
  void place() {
    for (Index i = 0; i < size_; ++i) values_[as_size(i)] = row_[columns_[as_size(i)]];
    std::fill(values_.begin() + size_, values_.end(), -std::numeric_limits<T>::infinity());
    count_ranks(values_.data(), size_);
    std::fill(placed_.begin() + size_, placed_.begin() + std::max(k_, size_), T(0));
    for (Index i = 0; i < size_; ++i) placed_[as_size(ranks_[as_size(i)])] = values_[as_size(i)];
  }

  void sort() {
    std::fill(placed_.begin(), placed_.end(), T(0));
    T* next = placed_.data();
    for (const Candidate& each : keep_best(true)) *next++ = each.value;
  }

  Index k_;
  Index capacity_;
  const T* row_ = nullptr;
  Index size_ = 0;
  T bar_ = T(0);
  bool in_column_order_ = true;
  std::vector<Index> columns_;  // of the candidates
  std::vector<T> values_;
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
