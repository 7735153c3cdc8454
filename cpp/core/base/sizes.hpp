// The sizes by which work is cut. Tasks depend on them and on the data, never on the number of
// threads, so results have the same bits for any number of them. Another size gives other last
// digits.
//
//   panel   kPanel rows, column-major and contiguous: the unit of kernel tiles and of row checks
//   tile    (kPanel, kPanel) entries of K, which stay in L2
//   block   kBlock rows, whose features exist at one time: the unit of sums over rows
//   stripe  consecutive panels that one task passes over
//   lanes   rows that a loop over columns keeps in registers
//   piece   any of these, at the end of the data a shorter one
#pragma once

#include <algorithm>

#include "core/base/types.hpp"

namespace ckce {

// Rows.
constexpr Index kPanel = 128;
constexpr Index kBlock = 1024;
constexpr Index kPadding = 136;     // between the columns of a block, else they share cache sets
constexpr Index kLoadRows = 8;      // read at a time: a cache line of each column
constexpr Index kStripRows = 16;    // looked at while memory delivers the next
constexpr Index kTestRows = 512;    // of the calibration test, whose features exist at one time
constexpr Index kTestSets = 4096;   // of labels that it draws, whose sums exist at one time
constexpr Index kScaledRows = 256;  // that are multiplied by their weights at a time
constexpr Index kCheckedRows = 8 * kBlock;  // of a task that checks or bins, read by panels
constexpr Index kScoredPanels = 16;         // of a task that scores
constexpr Index kBinTables = 64;            // at most, one for each task: a table costs memory

// Columns.
constexpr Index kFactorColumns = 128;  // of a Cholesky factor at a time
constexpr Index kFactorTile = 256;     // rows and columns of its trailing update
constexpr Index kSolveColumns = 64;    // right-hand sides of a task
constexpr Index kMomentColumns = 32;   // of Q'V in a task
constexpr Index kFeatureGroups = 8;    // of random features, left out in turn
constexpr Index kWideFeatures = 512;   // above, two blocks share the cost of adding a (d, d) sum

// Where one way of computing begins to beat another.
constexpr Index kFewColumns = 24;   // below, a product of a tile stays in registers
constexpr Index kFewClasses = 32;   // up to here, products of rows of a kernel do
constexpr Index kManyClasses = 32;  // from here on Phi'Q is taken from Phi'Phi; below, the product
                                    // with R is as cheap and does not cancel
constexpr Index kLongRow = 16;      // from here on a row is looked at along itself
constexpr Index kManyDraws = 24;    // above, a drawn class is found by bisection

// Pivots of an incomplete Cholesky factor.
constexpr Index kScouts = 8192;      // rows among which the first are sought where there are many
constexpr Index kCandidates = 64;    // drawn at a time
constexpr Index kChunkColumns = 16;  // for which memory is taken at a time

constexpr Index kSumsInCache = Index{1} << 16;  // doubles that a task goes over again and again

// Doubles that the buffers of all threads take together, at most (1 GiB): more threads than that
// leaves room for do not work at the same time.
constexpr Index kThreadDoubles = Index{1} << 27;

constexpr Index count_pieces(Index n, Index size) { return (n + size - 1) / size; }

// Panels of a stripe: few enough for all threads to have some, and where there are many, so many
// that threads stay out of each other's pages.
inline Index stripe_of(Index n_panels) { return std::clamp<Index>(n_panels / 32, 1, 128); }

// A register of this instruction set, and how many there are. Lanes never mix, so neither changes
// bits.
using Packet = Eigen::internal::packet_traits<double>::type;
constexpr int kWidth = Eigen::internal::packet_traits<double>::size;
constexpr int kRegisters = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;

// Two registers.
constexpr int kLanes = 2 * kWidth;
using Lanes = Eigen::Array<double, kLanes, 1>;
static_assert(kPanel % kLanes == 0, "a panel is whole lanes");

}  // namespace ckce
