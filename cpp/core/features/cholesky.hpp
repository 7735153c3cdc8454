// G (n, d) with G G' ~ K by incomplete Cholesky factorisation with pivoting (paper, section
// "Empirical Evaluation", below eq. (7); Fine and Scheinberg 2002). E = K - G G' >= 0, and its
// diagonal is known. G has rows for the points that it was made of only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/panels.hpp"
#include "core/base/parallel.hpp"
#include "core/base/random.hpp"
#include "core/features/features.hpp"
#include "core/kernels/kernel.hpp"

namespace ckce {

enum class Pivoting {
  kGreedy,  // the row with the largest E_ii next, one at a time; many rows: of a sample first
  kRandom  // rows drawn with probability E_ii / tr E, in blocks (Chen, Epperly, Tropp, Webber 2023)
};

class Cholesky : public Features {
 public:
  // Without columns yet. Whatever adds some must be given the same `gram`; `whole` is all of it, if
  // it is known.
  Cholesky(const Gram& gram, Pivoting pivoting, std::uint64_t seed, Parallel& parallel,
           const Matrix* whole = nullptr);

  // Adds columns until tr E <= tol tr K, or there are `rank`, or E is down at the level of
  // round-off. O(n rank (m + rank))
  void extend(const Gram& gram, Index rank, double tol, Parallel& parallel);

  // Memory for so many columns at once, so that panels of G lie together.
  void reserve(Index columns) { make_room(columns); }

  // Adds these rows, one after the other, but for those that are explained down to the level of
  // round-off. O(n rank (m + rank))
  void add_in_order(const Gram& gram, const std::vector<Index>& rows, Parallel& parallel);

  using Features::fill;
  Index d() const override { return static_cast<Index>(pivots_.size()); }
  Index m() const override { return m_; }
  std::optional<Index> rows() const override { return residual_.size(); }
  void fill(Index begin, const In& q, MatrixRef phi) const override;
  void fill_rows(const std::vector<Index>& rows, const In&, MatrixRef phi) const override {
    phi = rows_of_g(rows);
  }
  bool certified() const override { return true; }
  Vector left_out(Index begin, const In& q, const In& phi) const override;
  double slack(const Matrix& phi_phi, double weight, Parallel& parallel) const override;

  Vector residual() const;  // E_ii (n,)
  // Rows of G of a panel where they lie together in memory, else `copy`, filled with them.
  In panel(Index i, Index rows, Matrix& copy) const;
  const std::vector<Index>& pivots() const { return pivots_; }
  Matrix rows_of_g(const std::vector<Index>& which) const;
  bool exhausted() const { return largest_residual_ <= kRoundOff * largest_; }

 private:
  friend Cholesky factor_kernel(const Kernel& kernel, const Probs& probs, Index rank, double tol,
                                Pivoting pivoting, std::uint64_t seed, Parallel& parallel);
  static constexpr double kRoundOff = 1e-12;  // never pivot below this share of the largest k(q, q)
  struct Chunk {                              // columns [first, first + used) of G
    Panels columns;
    Index first;
    Index used;
  };
  struct Kept {  // candidates that become pivots
    std::vector<Index> rows;
    Matrix factor;  // L of their block of E
  };
  struct Summary {  // of E_ii over a stripe of panels
    double trace = 0.0;
    double largest = -1.0;
    Index row = 0;  // the first that has it
  };

  void add_from_scouts(const Gram& gram, Index rank, double tol, Parallel& parallel);
  std::vector<Index> choose(Index count);
  void add(const Gram& gram, const std::vector<Index>& candidates, Parallel& parallel);
  Kept keep(const Gram& gram, const std::vector<Index>& candidates);
  std::vector<Summary> append_columns(const Gram& gram, const Kept& kept, Parallel& parallel);
  void summarise(Index panel, Summary& summary) const;
  void sum_up(const std::vector<Summary>& summaries);
  void make_room(Index columns);

  const Matrix* whole_;
  Index m_;
  double entry_error_;  // of K
  Pivoting pivoting_;
  SplitMix64 random_;
  std::vector<Chunk> chunks_;
  std::vector<Index> pivots_;
  Vector residual_;  // E_ii, but 0 for rows that are no candidates any more
  std::vector<std::pair<Index, double>> dropped_;  // such rows that are no pivots, and their E_ii
  double trace_ = 0.0;
  double largest_ = 0.0;
  double residual_trace_ = 0.0;
  double largest_residual_ = 0.0;
  Index largest_row_ = 0;
};

// The factor of K over these predictions, of at most `rank` columns. O(n rank (m + rank))
Cholesky factor_kernel(const Kernel& kernel, const Probs& probs, Index rank, double tol,
                       Pivoting pivoting, std::uint64_t seed, Parallel& parallel);

}  // namespace ckce
