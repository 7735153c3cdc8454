#include "core/stream/cell_accumulator.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/binary/cell_problem.hpp"
#include "core/binary/ckce_binary.hpp"
#include "core/binary/jkce_binary.hpp"

namespace ckce {
namespace {

// Calls part(data, count) for the numbers of a tally in the order of `pack`, but for `rows`.
template <class AnyTally, class Part>
void each_cell_part(AnyTally& tally, Part part) {
  auto& cells = tally.cells;
  for (auto* number : {&cells.weight, &cells.norms, &cells.linear_norms, &cells.off_simplex})
    part(number, 1);
  auto& scores = tally.scores;
  for (auto* number :
       {&scores.hits, &scores.confidence, &scores.brier, &scores.log_loss, &scores.sharpness})
    part(number, 1);
  part(scores.residual.data(), scores.residual.size());
  part(scores.labels.data(), scores.labels.size());
  part(tally.bins.data(), tally.bins.size());
}

Index packed_size(const CellTally& tally) {
  Index size = 1;
  each_cell_part(tally, [&](const double*, Index count) { size += count; });
  return size;
}

void check_size(const Vector& numbers, Index size) {
  if (numbers.size() != size)
    throw std::invalid_argument("sums must have " + std::to_string(size) + " entries, got " +
                                std::to_string(numbers.size()));
}

constexpr double kRounded = 1e-6;  // of what sums in another order may differ by

[[noreturn]] void refuse() { throw std::invalid_argument("cells that cannot be"); }

// |T_j| <= 1 and |r| <= 1, so no moment exceeds the first of its series, and none the weight.
bool possible(const double* moments, const Degrees& degrees) {
  const double weight = moments[0];
  if (!(weight > 0.0) || !std::isfinite(weight)) return false;
  const auto within = [&](Index count, double first, double most) {
    if (!(first >= 0.0 && first <= most * (1.0 + kRounded))) return false;
    for (Index j = 0; j < count; ++j)
      if (!(std::abs(moments[j]) <= first + kRounded * weight)) return false;
    moments += count;
    return true;
  };
  return within(degrees.w, weight, weight) && within(degrees.wr, weight, weight) &&
         within(degrees.wr2, moments[0], weight) && within(degrees.wpq, moments[0], 0.25 * weight);
}

bool possible(const Cell& cell, const Grid& grid) {
  for (std::size_t k = 0; k < cell.points.size(); ++k) {
    const Point& point = cell.points[k];
    if (!(point.p >= 0.0 && point.p <= 1.0) || grid.cell(point.p) != cell.cell ||
        !(point.w0 >= 0.0) || !(point.w1 >= 0.0) || !(point.w() > 0.0) || !std::isfinite(point.w()))
      return false;
    for (std::size_t other = 0; other < k; ++other)
      if (cell.points[other].p == point.p) return false;
  }
  return true;
}

}  // namespace

CellTally::CellTally(const Grid& grid, Index n_bins)
    : bins(Matrix::Zero(n_bins, 4)), cells(grid, Depth::kStream) {
  scores.residual = scores.labels = Vector::Zero(2);
}

void CellTally::add(const CellTally& other) {
  rows += other.rows;
  scores.add(other.scores);
  bins += other.bins;
  cells.merge(other.cells);
}

Vector CellTally::pack() const {
  Vector numbers(packed_size(*this));
  numbers[0] = static_cast<double>(rows);
  Index at = 1;
  each_cell_part(*this, [&](const double* from, Index count) {
    std::copy_n(from, count, numbers.data() + at);
    at += count;
  });
  return numbers;
}

void CellTally::unpack(const Vector& numbers) {
  check_size(numbers, packed_size(*this));
  rows = cells.rows = static_cast<Index>(numbers[0]);
  Index at = 1;
  each_cell_part(*this, [&](double* to, Index count) {
    std::copy_n(numbers.data() + at, count, to);
    at += count;
  });
  scores.weight = cells.weight;
}

Vector CellTally::pack_dense() const {
  const Vector first = pack();
  const Index size = cells.degrees().size();
  const auto count = static_cast<Index>(cells.grid().cells);
  Vector numbers = Vector::Zero(first.size() + count * size);
  numbers.head(first.size()) = first;
  for (Index slot = 0; slot < cells.count(); ++slot) {
    const Cell cell = cells.dense_copy(slot);
    std::copy(cell.moments.begin(), cell.moments.end(),
              numbers.data() + first.size() + cell.cell * size);
  }
  return numbers;
}

void CellTally::unpack_dense(const Vector& numbers) {
  const Index first = packed_size(*this);
  const Degrees& degrees = cells.degrees();
  const Index size = degrees.size();
  const auto count = static_cast<Index>(cells.grid().cells);
  check_size(numbers, first + count * size);
  unpack(numbers.head(first));
  for (Index c = 0; c < count; ++c) {
    const double* moments = numbers.data() + first + c * size;
    if (std::all_of(moments, moments + size, [](double x) { return x == 0.0; })) continue;
    if (!possible(moments, degrees)) refuse();
    cells.add(Cell{c, {}, std::vector<double>(moments, moments + size)});
  }
  check();
}

void CellTally::unpack(const Vector& numbers, const PackedCells& packed) {
  unpack(numbers);
  const double* from = packed.numbers.data();
  const double* const end = from + packed.numbers.size();
  std::int64_t last = -1;
  if (packed.points.size() != packed.ids.size()) refuse();
  for (std::size_t c = 0; c < packed.ids.size(); ++c) {
    const std::int64_t points = packed.points[c];
    Cell cell{packed.ids[c], {}, {}};
    if (cell.cell <= last || static_cast<double>(cell.cell) >= cells.grid().cells || points < -1 ||
        points == 0 || points > cells.grid().nodes)
      refuse();
    const Index size = points < 0 ? cells.degrees().size() : 3 * points;
    if (end - from < size) refuse();
    if (points < 0) {
      if (!possible(from, cells.degrees())) refuse();
      cell.moments.assign(from, from + size);
    } else {
      for (std::int64_t k = 0; k < points; ++k)
        cell.points.push_back({from[3 * k], from[3 * k + 1], from[3 * k + 2]});
      if (!possible(cell, cells.grid())) refuse();
    }
    cells.add(cell);
    last = cell.cell;
    from += size;
  }
  if (from != end) refuse();
  check();
}

// What the cells hold must be what the sums say.
void CellTally::check() const {
  double weight = 0.0;
  double norms = 0.0;
  for (Index slot = 0; slot < cells.count(); ++slot) {
    weight += cells.weight_of(slot);
    norms += cells.norms_of(slot);
  }
  const double most = kRounded * cells.weight;
  const bool same =
      std::abs(weight - cells.weight) <= most && std::abs(norms - cells.norms) <= most;
  const bool small = cells.linear_norms >= 0.0 && cells.linear_norms <= cells.norms + most &&
                     cells.off_simplex >= 0.0 && std::isfinite(cells.off_simplex);
  if (!same || !small) refuse();
}

PackedCells pack_cells(const CellSums& cells) {
  PackedCells packed;
  Index size = 0;
  for (Index slot = 0; slot < cells.count(); ++slot) {
    const Cell& cell = cells.cell(slot);
    size += cell.dense() ? static_cast<Index>(cell.moments.size())
                         : 3 * static_cast<Index>(cell.points.size());
  }
  packed.numbers.resize(size);
  double* to = packed.numbers.data();
  for (const Index slot : cells.order()) {
    const Cell& cell = cells.cell(slot);
    packed.ids.push_back(cell.cell);
    packed.points.push_back(cell.dense() ? -1 : static_cast<std::int64_t>(cell.points.size()));
    if (cell.dense()) {
      to = std::copy(cell.moments.begin(), cell.moments.end(), to);
      continue;
    }
    for (const Point& point : cell.points) {
      *to++ = point.p;
      *to++ = point.w0;
      *to++ = point.w1;
    }
  }
  return packed;
}

double CellAccumulator::state_price(Parallel& parallel) const {
  return look([](const CellTally& tally) { return tally.cells.bytes(); }, parallel);
}

double CellAccumulator::solve_price(Parallel& parallel) const {
  return look([](const CellTally& tally) { return ckce::solve_price(tally.cells); }, parallel);
}

CellAccumulator::CellAccumulator(double bandwidth, bool linear_part, LabelKernel label,
                                 Index n_bins, std::optional<Index> predicted)
    : Blocked<CellTally>(CellTally(Grid(bandwidth), n_bins), 2),
      grid_(bandwidth),
      linear_part_(linear_part),
      label_(std::move(label)),
      n_bins_(n_bins),
      predicted_(predicted) {}

void CellAccumulator::add_rows(const std::vector<Samples>& pieces, CellTally& tally,
                               Parallel& parallel) const {
  const std::vector<Samples> blocks = cut_into_blocks(pieces);
  parallel.each(static_cast<Index>(blocks.size()), [&] {
    return [&](Index task) {
      const Samples& samples = blocks[as_size(task)];
      const RowSums sums = row_sums(samples, predicted_, n_bins_);
      parallel.in_turn(task, [&] {
        tally.rows += samples.n();
        tally.scores.add(sums.scores);
        tally.bins += sums.bins;
      });
    };
  });
  for (const Samples& piece : pieces) tally.cells.add(piece, parallel);
}

AccumulatorResult CellAccumulator::solve(std::optional<double> regularization,
                                         Parallel& parallel) const {
  const CellTally tally = settled(parallel);
  if (tally.rows == 0) throw std::domain_error(kNoRows);
  AccumulatorResult result;
  result.rows = tally.rows;
  result.scores = tally.scores;
  result.bins = tally.bins;
  const double weight = tally.cells.weight;
  result.regularization = regularization ? *regularization : std::pow(weight, -0.25);
  CellSolution cells =
      solve_cells(tally.cells, label_, linear_part_, result.regularization * weight, parallel);
  result.solution = std::move(cells.solution);
  result.influence_square = cells.influence_square;
  result.missing = 0.0;
  const CellJkce joint = jkce_cells(tally.cells, label_, linear_part_, parallel);
  result.off_diagonal = joint.sums.off_diagonal;
  result.diagonal = joint.sums.diagonal;
  result.rows_square = joint.rows_square;
  return result;
}

// z = A'sqrt(w) V are sums of Chebyshev polynomials over the rows. Weights g at the nodes t_b have
// the same sums: g_b = sum_k (2 - [k = 0]) z_k T_k(t_b) / nodes, and k(x, p) is such a polynomial
// in x.
Matrix CellAccumulator::witness(std::optional<double> regularization, Parallel& parallel) const {
  const CellTally tally = settled(parallel);
  if (tally.rows == 0) throw std::domain_error(kNoRows);
  const double weight = tally.cells.weight;
  const double lambda = regularization ? *regularization : std::pow(weight, -0.25);
  const CellProblem problem(tally.cells, linear_part_, lambda * weight, parallel);
  const Vector v = problem.solve_refined(problem.compress_residuals(), parallel);
  const Matrix z = problem.expand(v);
  const Index nodes = grid_.nodes;
  const CellKernel& kernel = problem.kernel();
  Matrix out(nodes * kernel.count(), 2);
  for (Index c = 0; c < kernel.count(); ++c) {
    for (Index b = 0; b < nodes; ++b) {
      const auto angle = static_cast<double>(EIGEN_PI * (static_cast<double>(b) + 0.5) /
                                             static_cast<double>(nodes));
      double g = z(0, c);
      for (Index k = 1; k < nodes; ++k)
        g += 2.0 * z(k, c) * std::cos(static_cast<double>(k) * angle);
      out(c * nodes + b, 0) = grid_.centre(kernel.cell(c)) + 0.5 * grid_.width * std::cos(angle);
      out(c * nodes + b, 1) = g / static_cast<double>(nodes);
    }
  }
  return out;
}

}  // namespace ckce
