#include "core/metrics/scores.hpp"

#include <cmath>

#include "core/base/panels.hpp"
#include "core/base/residuals.hpp"
#include "core/base/row_panel.hpp"

namespace ckce {

void Scores::add(const Scores& other) {
  weight += other.weight;
  hits += other.hits;
  confidence += other.confidence;
  brier += other.brier;
  log_loss += other.log_loss;
  sharpness += other.sharpness;
  residual += other.residual;
  labels += other.labels;
}

Scores scores(const Samples& samples, Parallel& parallel) {
  const Index m = samples.m();
  Scores total;
  total.residual = Vector::Zero(m);
  total.labels = Vector::Zero(m);
  const Index n_panels = Panels::count(samples.n());
  parallel.each(count_pieces(n_panels, kScoredPanels), [&] {
    return [&, panel = RowPanel(m)](Index task) mutable {
      Scores sum;
      sum.residual = sum.labels = Vector::Zero(m);
      for (Index k = task * kScoredPanels; k < std::min((task + 1) * kScoredPanels, n_panels);
           ++k) {
        const Index begin = k * kPanel;
        const Index rows = std::min(kPanel, samples.n() - begin);
        const std::int64_t* labels = samples.labels + begin;
        const Vector w = weights_of(samples, begin, rows);
        panel.load(samples.probs, begin, rows);
        MatrixRef q = panel.q.topRows(rows);
        sum.weight += w.sum();
        for (Index j = 0; j < m; ++j) sum.sharpness += w.dot(q.col(j).cwiseAbs2());
        for (Index i = 0; i < rows; ++i) {
          sum.confidence += w[i] * panel.confidence[i];
          if (panel.predicted[i] == static_cast<double>(labels[i])) sum.hits += w[i];
          sum.log_loss -= w[i] * std::log(q(i, labels[i]));
          sum.labels[labels[i]] += w[i];
        }
        residuals_in_place(labels, q);
        for (Index j = 0; j < m; ++j) {
          sum.brier += w.dot(q.col(j).cwiseAbs2());
          sum.residual[j] += w.dot(q.col(j));
        }
      }
      parallel.in_turn(task, [&] { total.add(sum); });
    };
  });
  return total;
}

}  // namespace ckce
