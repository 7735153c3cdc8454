#include "core/binary/line_nodes.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "core/linalg/products.hpp"

namespace ckce {
namespace {

constexpr double kOffLine = 0x1p-22;      // |q_0 + q_1 - 1| of rows that float32 rounded
constexpr double kLeastWidth = 0x1p-20;   // of a cell
constexpr Index kLeastRows = 4 * kBlock;  // below, rows are as cheap
constexpr Index kRowsPerNode = 4;         // at least, where nodes cost as much as rows
constexpr Index kFewNodes = Index{1} << 16;
constexpr Index kAbreast = 8;        // rows side by side; part of the bits
constexpr Index kRowsInCache = 256;  // rows whose T_j stay in L1
constexpr Index kTogether = 4;       // functions
constexpr Index kSums = 3;           // w, w r, w r^2
using Abreast = Eigen::Array<double, kAbreast, 1>;

double angle(Index node) {
  return 3.14159265358979323846 * (static_cast<double>(node) + 0.5) / static_cast<double>(kNodes);
}

// Values at nodes -> coefficients of T_0, T_1, ...
Matrix chebyshev_transform() {
  Matrix transform(kNodes, kNodes);
  for (Index j = 0; j < kNodes; ++j)
    for (Index a = 0; a < kNodes; ++a)
      transform(a, j) = (a == 0 ? 1.0 : 2.0) / static_cast<double>(kNodes) *
                        std::cos(static_cast<double>(a) * angle(j));
  return transform;
}

// to(s, j) += sum_i series(i, s) T_j(t_i), whole kAbreast rows
void add_moments(const double* t, const In& series, MatrixRef to) {
  double odd[kRowsInCache], even[kRowsInCache];
  for (Index first = 0; first < series.rows(); first += kRowsInCache) {
    const Index rows = std::min(kRowsInCache, series.rows() - first);
    std::copy_n(t + first, rows, odd);  // T_-1 = T_1
    std::fill_n(even, rows, 1.0);
    double* before = odd;
    double* now = even;
    for (Index j = 0; j < kNodes; ++j) {
      Abreast sums[kSums] = {Abreast::Zero(), Abreast::Zero(), Abreast::Zero()};
      for (Index i = 0; i < rows; i += kAbreast) {
        const Abreast value = Eigen::Map<const Abreast>(now + i);
        for (Index s = 0; s < kSums; ++s)
          sums[s] += Eigen::Map<const Abreast>(series.col(s).data() + first + i) * value;
        Eigen::Map<Abreast> other(before + i);  // T_(j+1) = 2 t T_j - T_(j-1)
        other = 2.0 * Eigen::Map<const Abreast>(t + first + i) * value - other;
      }
      for (Index s = 0; s < kSums; ++s) to(s, j) += sums[s].sum();
      std::swap(before, now);
    }
  }
}

}  // namespace

LineGrid::LineGrid(double bandwidth) : width(0.125) {
  while (width > bandwidth && width >= kLeastWidth) width *= 0.5;
  inverse = 1.0 / width;
  root = std::sqrt(width);
  half = static_cast<Index>(0.5 * inverse) + 1;
}

double LineGrid::place(double x, Index below) const {
  if (below < 2) return 4.0 * std::sqrt(x) / root - (below == 0 ? 1.0 : 3.0);
  return 2.0 * (x * inverse - static_cast<double>(below - 1)) - 1.0;
}

double LineGrid::at(double t, Index below) const {
  if (below >= 2) return (static_cast<double>(below - 1) + 0.5 * (t + 1.0)) * width;
  const double u = 0.25 * root * (t + (below == 0 ? 1.0 : 3.0));
  return u * u;
}

// Another thread may have written into the caller's array: then any node of the cell will do.
Index LineBlock::node_of(const LineRow& row, const LineNodes::Cell& cell) const {
  const auto at = std::lower_bound(cell.x.begin(), cell.x.end() - 1, row.x);
  return cell.first + (at - cell.x.begin());
}

void LineBlock::load(const Samples& samples, Index task) {
  const Index begin = task * kLineRows;
  const Index count = std::min(kLineRows, samples.n() - begin);
  samples.probs.load(begin, count, q_.topRows(count));
  rows.resize(as_size(count));
  slot_.resize(rows.size());
  nodes.resize(rows.size());
  places_.assign(nodes_.cells_.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<Index>(i);
    rows[i] = LineRow(q_(row, 0), q_(row, 1), samples.weight(begin + row),
                      samples.labels[begin + row] == 1);
    slot_[i] = std::max(nodes_.slots_[as_size(nodes_.grid_.cell(rows[i].x, rows[i].upper))], 0);
    const LineNodes::Cell& cell = nodes_.cells_[as_size(slot_[i])];
    nodes[i] = cell.dense ? -1 : node_of(rows[i], cell);
    places_[as_size(slot_[i])] += cell.dense;
  }
  runs.clear();
  Index end = 0;  // of the places; every run is whole kAbreast
  for (std::size_t slot = 0; slot < places_.size(); ++slot) {
    if (places_[slot] == 0) continue;
    const Index first = end;
    end += count_pieces(places_[slot], kAbreast) * kAbreast;
    runs.push_back({nodes_.cells_[slot].first, first, end});
    places_[slot] = static_cast<int>(first);
  }
  row_of.assign(as_size(end), -1);
  t.assign(as_size(end), 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (nodes[i] >= 0) continue;
    const auto place = as_size(places_[as_size(slot_[i])]++);
    row_of[place] = static_cast<int>(i);
    t[place] = nodes_.grid_.place(rows[i].x, nodes_.cells_[as_size(slot_[i])].below);
  }
}

std::optional<LineNodes> LineNodes::of(const LineSections& sections, const Samples& samples,
                                       Parallel& parallel) {
  if (samples.m() != 2 || samples.groups || samples.n() < kLeastRows) return std::nullopt;
  const LineGrid grid(sections.bandwidth());
  if (grid.width < kLeastWidth) return std::nullopt;
  LineNodes nodes(grid);
  if (!nodes.find_cells(samples, parallel)) return std::nullopt;
  const Index most = samples.n() / kRowsPerNode;
  if (nodes.count() > (sections.sparse() ? std::max(most, kFewNodes) : most)) return std::nullopt;
  return nodes;
}

bool LineNodes::find_cells(const Samples& samples, Parallel& parallel) {
  slots_.assign(as_size(grid_.count()), -1);
  std::mutex mutex;
  bool on_line = true;
  parallel.each(count_pieces(samples.n(), kLineRows), [&] {
    return [&, q = Matrix(kLineRows, 2), x = Vector(kLineRows),
            at = std::vector<Index>(kLineRows)](Index task) mutable {
      const Index begin = task * kLineRows;
      const Index rows = std::min(kLineRows, samples.n() - begin);
      samples.probs.load(begin, rows, q.topRows(rows));
      double off = 0.0;
      for (Index i = 0; i < rows; ++i) {
        const LineRow row(q(i, 0), q(i, 1), 1.0, true);
        off = std::max(off, std::abs(row.off));
        x[i] = row.x;
        at[as_size(i)] = grid_.cell(row.x, row.upper);
      }
      const std::lock_guard<std::mutex> lock(mutex);  // sets are the same in any order
      on_line = on_line && off <= kOffLine;
      for (Index i = 0; i < rows; ++i) {
        std::int32_t& slot = slots_[as_size(at[as_size(i)])];
        if (slot < 0) {
          slot = static_cast<std::int32_t>(cells_.size());
          cells_.push_back({at[as_size(i)], at[as_size(i)] % grid_.half, false, {}, 0});
        }
        Cell& cell = cells_[as_size(slot)];
        if (cell.dense || std::find(cell.x.begin(), cell.x.end(), x[i]) != cell.x.end()) continue;
        cell.x.push_back(x[i]);
        cell.dense = static_cast<Index>(cell.x.size()) > kNodes;
      }
    };
  });
  std::sort(cells_.begin(), cells_.end(),
            [](const Cell& a, const Cell& b) { return a.cell < b.cell; });
  Index first = 0;
  for (std::size_t slot = 0; slot < cells_.size(); ++slot) {
    Cell& cell = cells_[slot];
    std::sort(cell.x.begin(), cell.x.end());
    slots_[as_size(cell.cell)] = static_cast<std::int32_t>(slot);
    cell.first = first;
    first = cell.end();
  }
  nodes_.reserve(as_size(count()));
  for (const Cell& cell : cells_)
    for (Index j = 0; j < cell.end() - cell.first; ++j) {
      LineRow node;
      node.x = cell.dense ? grid_.at(std::cos(angle(j)), cell.below) : cell.x[as_size(j)];
      node.upper = cell.cell >= grid_.half;
      nodes_.push_back(node);
    }
  return on_line;
}

void LineNodes::gather(const Samples& samples, Parallel& parallel) {
  Matrix sums = Matrix::Zero(kSums, count());  // of dense cells moments
  parallel.each(count_pieces(samples.n(), kLineRows), [&] {
    return [&, block = LineBlock(*this), series = Matrix(), part = Matrix()](Index task) mutable {
      block.load(samples, task);
      const auto of_row = [&](std::size_t i) {
        const LineRow& row = block.rows[i];
        return Eigen::Vector3d(row.w, row.w * row.r, row.w * row.r * row.r);
      };
      series.setZero(static_cast<Index>(block.t.size()), kSums);
      for (Index place = 0; place < series.rows(); ++place)
        if (block.row_of[as_size(place)] >= 0)
          series.row(place) = of_row(as_size(block.row_of[as_size(place)])).transpose();
      part.setZero(kSums, kNodes * static_cast<Index>(block.runs.size()));
      Index at = 0;
      for (const LineBlock::Run& run : block.runs) {
        add_moments(block.t.data() + run.first, series.middleRows(run.first, run.last - run.first),
                    part.middleCols(at, kNodes));
        at += kNodes;
      }
      parallel.in_turn(task, [&] {
        at = 0;
        for (const LineBlock::Run& run : block.runs) {
          sums.middleCols(run.node, kNodes) += part.middleCols(at, kNodes);
          at += kNodes;
        }
        for (std::size_t i = 0; i < block.rows.size(); ++i)
          if (block.nodes[i] >= 0) sums.col(block.nodes[i]) += of_row(i);
      });
    };
  });
  const Matrix transform = chebyshev_transform();
  for (const Cell& cell : cells_)
    if (cell.dense)
      sums.middleCols(cell.first, kNodes) = product(sums.middleCols(cell.first, kNodes), transform);
  w = sums.row(0);
  wr = sums.row(1);
  wr2 = sums.row(2);
}

Matrix LineNodes::q(Index begin, Index rows) const {
  Matrix q(rows, 2);
  for (Index i = 0; i < rows; ++i) {
    const LineRow& node = nodes_[as_size(begin + i)];
    q(i, node.upper ? 0 : 1) = node.x;
    q(i, node.upper ? 1 : 0) = 1.0 - node.x;
  }
  return q;
}

Vector LineNodes::residuals(Index begin, Index rows, bool positive) const {
  Vector r(rows);
  for (Index i = 0; i < rows; ++i) r[i] = nodes_[as_size(begin + i)].residual_of(positive);
  return r;
}

LineFunctions::LineFunctions(const LineNodes& nodes, Matrix values) : functions_(values.cols()) {
  const Matrix transform = chebyshev_transform();
  for (const LineNodes::Cell& cell : nodes.cells_)
    if (cell.dense)
      values.middleRows(cell.first, kNodes) =
          product(transform, values.middleRows(cell.first, kNodes));
  series_.setZero(count_pieces(functions_, kTogether) * kTogether, values.rows());
  series_.topRows(functions_) = values.transpose();
}

void LineFunctions::evaluate(const LineBlock& block, Matrix& out) const {
  out.resize(functions_, static_cast<Index>(block.rows.size()));
  const Index stride = series_.rows();
  for (const LineBlock::Run& run : block.runs)
    for (Index i = run.first; i < run.last; i += kAbreast) {
      const Abreast t = Eigen::Map<const Abreast>(block.t.data() + i);
      const Abreast twice = 2.0 * t;
      for (Index f = 0; f < functions_; f += kTogether) {
        Abreast sums[kTogether] = {Abreast::Zero(), Abreast::Zero(), Abreast::Zero(),
                                   Abreast::Zero()};
        Abreast before = t, now = Abreast::Ones();
        const double* c = series_.col(run.node).data() + f;
        for (Index j = 0; j < kNodes; ++j, c += stride) {
          for (Index k = 0; k < kTogether; ++k) sums[k] += c[k] * now;
          const Abreast next = twice * now - before;
          before = now;
          now = next;
        }
        const Index together = std::min(kTogether, functions_ - f);
        for (Index lane = 0; lane < kAbreast && block.row_of[as_size(i + lane)] >= 0; ++lane)
          for (Index k = 0; k < together; ++k)
            out(f + k, block.row_of[as_size(i + lane)]) = sums[k][lane];
      }
    }
  for (Index i = 0; i < out.cols(); ++i)
    if (block.nodes[as_size(i)] >= 0)
      out.col(i) = series_.col(block.nodes[as_size(i)]).head(functions_);
}

}  // namespace ckce
