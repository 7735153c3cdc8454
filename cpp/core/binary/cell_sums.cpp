#include "core/binary/cell_sums.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/binary/cell_rows.hpp"

namespace ckce {
namespace {

constexpr Index kWide = 8;       // rows side by side; part of the bits, so not that of the machine
constexpr Index kChunk = 256;    // rows whose T_j stay in L1
constexpr double kCell = 128.0;  // bytes of a cell without its sums, and of its place in the table
constexpr Index kShort = 6;      // rows of a cell up to which one after the other is as fast
using Wide = Eigen::Array<double, kWide, 1>;

double sum_of(const Wide& x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

// The sums of every cell that has a row in one block.
class CellBlock {
 public:
  explicit CellBlock(const CellSums& state) : rows(state.grid()), degrees_(state.degrees()) {
    for (auto* series : {&t_, &w_, &wr_, &wr2_, &wpq_, &before_, &now_}) series->resize(kChunk);
  }

  void add(const Samples& samples, Index block) {
    rows.load(samples, block);
    weight = norms = linear_norms = 0.0;
    for (Index i = 0; i < rows.rows; ++i) {
      const double p = rows.p[i];
      const double square = rows.w[i] * (rows.y[i] - p) * (rows.y[i] - p);
      weight += rows.w[i];
      norms += square;
      linear_norms += square * (p * p + (1.0 - p) * (1.0 - p));
    }
    points.clear();
    cells.clear();
    sums.clear();
    rows.each_cell([&](std::int64_t cell, Index first, Index last) {
      cells.push_back({cell, last - first <= kShort ? last - first : 0});
      if (last - first <= kShort) {
        for (Index i = first; i < last; ++i) points.push_back(point(rows.row(i)));
        return;
      }
      sums.resize(sums.size() + static_cast<std::size_t>(degrees_.size()), 0.0);
      double* to = sums.data() + sums.size() - degrees_.size();
      for (Index i = first; i < last; i += kChunk) add_chunk(i, std::min(i + kChunk, last), to);
    });
  }

  CellRows rows;
  double weight = 0.0;
  double norms = 0.0;
  double linear_norms = 0.0;
  // Cells in their order, each with a few points or, if `few` is 0, with sums.
  struct Found {
    std::int64_t cell;
    Index few;
  };
  std::vector<Found> cells;
  std::vector<Point> points;
  std::vector<double> sums;

 private:
  Point point(Index i) const {
    return {rows.p[i], rows.y[i] > 0.0 ? 0.0 : rows.w[i], rows.y[i] > 0.0 ? rows.w[i] : 0.0};
  }

  struct Row {
    double t, w, wr, wr2, wpq;
  };
  Row row(Index place) const {
    const Index i = rows.row(place);
    const double p = rows.p[i];
    const double r = rows.y[i] - p;
    const double w = rows.w[i];
    return {rows.t(i), w, w * r, w * r * r, w * p * (1.0 - p)};
  }

  // Many rows: degree by degree, rows side by side. Rows that fill up the last kWide weigh nothing.
  void add_chunk(Index first, Index last, double* to) {
    const Index padded = (last - first + kWide - 1) / kWide * kWide;
    for (Index i = 0; i < padded; ++i) {
      const Row x = first + i < last ? row(first + i) : Row{0.0, 0.0, 0.0, 0.0, 0.0};
      t_[i] = 2.0 * x.t;
      w_[i] = x.w;
      wr_[i] = x.wr;
      wr2_[i] = x.wr2;
      wpq_[i] = x.wpq;
      before_[i] = x.t;  // T_-1 = T_1
      now_[i] = 1.0;
    }
    double* before = before_.data();
    double* now = now_.data();
    double* to_wr = to + degrees_.w;
    double* to_wr2 = to_wr + degrees_.wr;
    double* to_wpq = to_wr2 + degrees_.wr2;
    for (Index j = 0; j < degrees_.w; ++j) {
      double with[4] = {0.0, 0.0, 0.0, 0.0};
      const bool squares = j < degrees_.wr2;
      if (j < degrees_.wr)
        squares ? step<true, true>(padded, before, now, with)
                : step<true, false>(padded, before, now, with);
      else
        squares ? step<false, true>(padded, before, now, with)
                : step<false, false>(padded, before, now, with);
      std::swap(before, now);
      to[j] += with[0];
      if (j < degrees_.wr) to_wr[j] += with[1];
      if (squares) to_wr2[j] += with[2];
      if (j < degrees_.wpq) to_wpq[j] += with[3];
    }
  }

  // The sums of T_j, and T_(j+1) = 2 t T_j - T_(j-1) in the place of T_(j-1).
  template <bool kResiduals, bool kSquares>
  void step(Index count, double* before, const double* now, double* with) const {
    Wide w = Wide::Zero(), wr = Wide::Zero(), wr2 = Wide::Zero(), wpq = Wide::Zero();
    for (Index i = 0; i < count; i += kWide) {
      const auto at = [i](const Vector& series) {
        return Eigen::Map<const Wide>(series.data() + i);
      };
      const Wide t = Eigen::Map<const Wide>(now + i);
      Eigen::Map<Wide> other(before + i);
      w += at(w_) * t;
      if (kResiduals) wr += at(wr_) * t;
      if (kSquares) {
        wr2 += at(wr2_) * t;
        wpq += at(wpq_) * t;
      }
      other = at(t_) * t - other;
    }
    with[0] = sum_of(w);
    with[1] = sum_of(wr);
    with[2] = sum_of(wr2);
    with[3] = sum_of(wpq);
  }

  const Degrees& degrees_;
  Vector t_, w_, wr_, wr2_, wpq_, before_, now_;
};

}  // namespace

Degrees::Degrees(Index nodes, Depth depth)
    : w(depth == Depth::kStream ? 4 * nodes - 3 : 2 * nodes - 1),
      wr(depth == Depth::kStream ? 3 * nodes - 2 : nodes),
      wr2(depth == Depth::kValue ? 1 : 2 * nodes - 1),
      wpq(depth == Depth::kValue ? 0 : 2 * nodes - 1) {}

void CellSums::add(const Samples& samples, Parallel& parallel) {
  parallel.each((samples.n() + kBlock - 1) / kBlock, [&] {
    return [&, block = CellBlock(*this)](Index task) mutable {
      block.add(samples, task);
      parallel.in_turn(task, [&] {
        rows += block.rows.rows;
        weight += block.weight;
        norms += block.norms;
        linear_norms += block.linear_norms;
        off_simplex = std::max(off_simplex, block.rows.off);
        const Point* points = block.points.data();
        const double* sums = block.sums.data();
        for (const auto& [cell, few] : block.cells) {
          Cell& to = at(cell);
          for (Index i = 0; i < few; ++i) add_point(to, *points++);
          if (few > 0) continue;
          if (sums[0] > 0.0) add_moments(to, sums);  // rows of weight 0 make no cell dense
          sums += degrees_.size();
        }
      });
    };
  });
}

Cell& CellSums::at(std::int64_t cell) {
  const auto [found, added] = slots_.try_emplace(cell, count());
  if (added) cells_.push_back({cell, {}, {}});
  return cells_[static_cast<std::size_t>(found->second)];
}

void CellSums::add_point(Cell& cell, const Point& point) {
  if (cell.dense()) return add_to_moments(cell, point);
  if (!(point.w() > 0.0)) return;
  for (Point& other : cell.points)
    if (other.p == point.p) {
      other.w0 += point.w0;
      other.w1 += point.w1;
      return;
    }
  cell.points.push_back(point);
  if (static_cast<Index>(cell.points.size()) > grid_.nodes) make_dense(cell);
}

void CellSums::add_to_moments(Cell& cell, const Point& point) const {
  double t[4 * kMostNodes];
  chebyshev(grid_.place(point.p, cell.cell), degrees_.w, t);
  double* to = cell.moments.data();
  const auto add_series = [&](double factor, Index count) {
    for (Index j = 0; j < count; ++j) to[j] += factor * t[j];
    to += count;
  };
  add_series(point.w(), degrees_.w);
  add_series(point.wr(), degrees_.wr);
  add_series(point.wr2(), degrees_.wr2);
  add_series(point.wpq(), degrees_.wpq);
}

Cell CellSums::dense_copy(Index slot) const {
  Cell copy = cell(slot);
  make_dense(copy);
  return copy;
}

void CellSums::make_dense(Cell& cell) const {
  if (cell.dense()) return;
  cell.moments.assign(static_cast<std::size_t>(degrees_.size()), 0.0);
  for (const Point& point : cell.points) add_to_moments(cell, point);
  cell.points = {};
}

void CellSums::add_moments(Cell& cell, const double* moments) {
  make_dense(cell);
  for (double& sum : cell.moments) sum += *moments++;
}

void CellSums::add(const Cell& cell) {
  Cell& to = at(cell.cell);
  for (const Point& point : cell.points) add_point(to, point);
  if (cell.dense()) add_moments(to, cell.moments.data());
}

void CellSums::merge(const CellSums& other) {
  rows += other.rows;
  weight += other.weight;
  norms += other.norms;
  linear_norms += other.linear_norms;
  off_simplex = std::max(off_simplex, other.off_simplex);
  for (const Cell& cell : other.cells_) add(cell);
}

std::vector<Index> CellSums::order() const {
  std::vector<Index> order(cells_.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return cell(a).cell < cell(b).cell; });
  return order;
}

double CellSums::weight_of(Index slot) const {
  if (cell(slot).dense()) return w(slot)[0];
  double sum = 0.0;
  for (const Point& point : cell(slot).points) sum += point.w();
  return sum;
}

double CellSums::norms_of(Index slot) const {
  if (cell(slot).dense()) return wr2(slot)[0];
  double sum = 0.0;
  for (const Point& point : cell(slot).points) sum += point.wr2();
  return sum;
}

Vector CellSums::residuals_of(Index slot) const {
  if (cell(slot).dense()) return Eigen::Map<const Vector>(wr(slot), grid_.nodes);
  Vector sum = Vector::Zero(grid_.nodes);
  Vector t(grid_.nodes);
  for (const Point& point : cell(slot).points) {
    chebyshev(grid_.place(point.p, cell(slot).cell), grid_.nodes, t.data());
    sum += point.wr() * t;
  }
  return sum;
}

double CellSums::bytes() const {
  double sum = 0.0;
  for (const Cell& cell : cells_)
    sum += kCell + static_cast<double>(sizeof(Point) * cell.points.capacity()) +
           static_cast<double>(sizeof(double) * cell.moments.size());
  return sum;
}

double CellSums::price(double cells, Index nodes, Depth depth) {
  return cells * (8.0 * static_cast<double>(Degrees(nodes, depth).size()) + kCell);
}

}  // namespace ckce
