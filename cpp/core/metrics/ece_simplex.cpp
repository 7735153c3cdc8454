// Bins of the whole simplex, eq. (10) of the paper: B^m of them, of which only those exist that
// hold a sample.
#include <algorithm>

#include "core/base/random.hpp"
#include "core/metrics/ece.hpp"
#include "core/metrics/uniform_bins.hpp"

namespace ckce {
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
    return bins[as_size(slots_[slot])];
  }

  std::vector<OccupiedBin> bins;

 private:
  std::size_t find(const Key& key) const {
    std::size_t slot = key.low & (slots_.size() - 1);
    while (slots_[slot] >= 0) {
      const Key& other = bins[as_size(slots_[slot])].key;
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
      Key& key = keys[as_size(i)];
      key.low += random.bits();
      key.high += random.bits();
    }
  }
}

// The occupied bins of the simplex, and the sums over their rows.
class SimplexTable {
 public:
  explicit SimplexTable(const Samples& samples)
      : samples_(samples), m_(samples.m()), row_(1, samples.m()) {}

  const std::vector<OccupiedBin>& bins() const { return map_.bins; }

  // The rows of q, samples begin, begin + 1, ..., whose bins have these keys.
  void add(const std::vector<Key>& keys, Index begin, const In& q) {
    for (Index i = 0; i < q.rows(); ++i) {
      OccupiedBin& bin = map_.at(keys[as_size(i)], begin + i);
      ++bin.count;
      bin.weight += samples_.weight(begin + i);
      if (bin.count == 1) continue;
      if (bin.sums < 0) {
        bin.sums = static_cast<Index>(sums_.size());
        sums_.push_back(Vector::Zero(2 * m_));
        samples_.probs.load(bin.first_row, 1, row_);
        add_row(sums_.back(), row_.row(0), bin.first_row);
      }
      add_row(sums_[as_size(bin.sums)], q.row(i), begin + i);
    }
  }

  // sum = [sum w q | sum w y] of the bin; `row` is scratch.
  void read(const OccupiedBin& bin, Matrix& row, Vector& sum) const {
    if (bin.sums < 0) {
      samples_.probs.load(bin.first_row, 1, row);
      sum.setZero();
      add_row(sum, row.row(0), bin.first_row);
    } else {
      sum = sums_[as_size(bin.sums)];
    }
  }

 private:
  template <class Row>
  void add_row(Vector& sum, const Row& q, Index row) const {
    const double w = samples_.weight(row);
    sum.head(m_) += w * q.transpose();
    sum[m_ + samples_.labels[row]] += w;
  }

  const Samples& samples_;
  Index m_;
  BinMap map_;
  std::vector<Vector> sums_;  // of the bins with more than one row
  Matrix row_;
};

SimplexTable fill_table(const Samples& samples, Index n_bins, Parallel& parallel) {
  SimplexTable table(samples);
  parallel.each(count_pieces(samples.n(), kBlock), [&] {
    return [&, q_block = Matrix(kBlock, samples.m()),
            keys = std::vector<Key>(kBlock)](Index task) mutable {
      const Index begin = task * kBlock;
      const Index rows = std::min(kBlock, samples.n() - begin);
      MatrixRef q = q_block.topRows(rows);
      samples.probs.load(begin, rows, q);
      std::fill(keys.begin(), keys.end(), Key());
      add_keys(q, n_bins, keys);
      parallel.in_turn(task, [&] { table.add(keys, begin, q); });
    };
  });
  return table;
}

Gaps measure_gaps(const SimplexTable& table, Index m, double total, Parallel& parallel) {
  Gaps all;
  const auto n_occupied = static_cast<Index>(table.bins().size());
  parallel.each(count_pieces(n_occupied, kBlock), [&] {
    return [&, row = Matrix(1, m), sum = Vector(2 * m)](Index task) mutable {
      Gaps gaps;
      for (Index k = task * kBlock; k < std::min((task + 1) * kBlock, n_occupied); ++k) {
        const OccupiedBin& bin = table.bins()[as_size(k)];
        table.read(bin, row, sum);
        const auto labels = sum.tail(m).array();
        const double variance = 1.0 - (labels / bin.weight).square().sum();
        sum.head(m) -= sum.tail(m);
        const auto gap = sum.head(m);
        gaps.add_bin(total, bin.weight, gap.lpNorm<1>(), gap.squaredNorm(),
                     gap.lpNorm<Eigen::Infinity>(), variance);
      }
      parallel.in_turn(task, [&] { all.add(gaps); });
    };
  });
  return all;
}

}  // namespace

SimplexBins ece_simplex(const Samples& samples, Index n_bins, Parallel& parallel) {
  parallel.span(0.0, 0.8);
  const SimplexTable table = fill_table(samples, n_bins, parallel);
  parallel.span(0.8, 1.0);
  SimplexBins result;
  result.gaps = measure_gaps(table, samples.m(), total_weight(samples), parallel);
  result.counts.reserve(table.bins().size());
  for (const OccupiedBin& bin : table.bins()) result.counts.push_back(bin.count);
  return result;
}

}  // namespace ckce
