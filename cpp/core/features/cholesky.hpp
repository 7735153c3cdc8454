// G with G G' ~ K by incomplete Cholesky factorisation with pivoting (paper, section "Empirical
// Evaluation"; Fine and Scheinberg 2002). E = K - G G' >= 0, and its diagonal is known.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/kernel.hpp"
#include "../parallel.hpp"
#include "../random.hpp"
#include "../residuals.hpp"
#include "features.hpp"

namespace ckce {

enum class Pivoting {
  kGreedy,  // the row with the largest E_ii next, one at a time; many rows: of a sample first
  kRandom  // rows drawn with probability E_ii / tr E, in blocks (Chen, Epperly, Tropp, Webber 2023)
};

class Cholesky : public Features {
 public:
  Cholesky(const Kernel& kernel, const Points& points, Pivoting pivoting, std::uint64_t seed,
           Parallel& parallel);

  // Adds columns until tr E <= tol tr K, or there are `rank`, or E is down at the level of
  // round-off. O(n rank (m + rank))
  void extend(Index rank, double tol, Parallel& parallel);

  // Adds these rows, one after the other, but for those that are explained down to the level of
  // round-off. O(n rank (m + rank))
  void add_in_order(const std::vector<Index>& rows, Parallel& parallel);

  using Features::fill;
  Index d() const override { return static_cast<Index>(pivots_.size()); }
  void fill(Index begin, const In& q, MatrixRef phi) const override;
  Vector residual() const;  // E_ii (n,)
  const std::vector<Index>& pivots() const { return pivots_; }
  Matrix rows(const std::vector<Index>& which) const;  // of G so far
  bool exhausted() const { return largest_residual_ <= kRoundOff * largest_; }

 private:
  static constexpr double kRoundOff = 1e-12;  // never pivot below this share of the largest k(q, q)
  struct Chunk {                              // columns [first, first + used) of G
    Panels columns;
    Index first;
    Index used;
  };

  static constexpr Index kScouts = 8192;

  void add_from_scouts(Index rank, double tol, Parallel& parallel);
  std::vector<Index> choose(Index count);
  void add(const std::vector<Index>& candidates, Parallel& parallel);
  void make_room(Index columns);

  const Kernel& kernel_;
  const Points& points_;
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

// CKCE with G in place of Phi, and the certificate that E gives. O(n rank (m + rank))
Solution solve_cholesky(const Kernel& kernel, const Samples& samples, const LabelKernel& label,
                        Index rank, double tol, Pivoting pivoting, std::uint64_t seed, double ridge,
                        bool full, Parallel& parallel);

}  // namespace ckce
