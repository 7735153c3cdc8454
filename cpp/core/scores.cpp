#include "scores.hpp"

#include <cmath>

#include "residuals.hpp"
#include "top_label.hpp"

namespace ckce {

Scores scores(const Samples& samples, Parallel& parallel) {
  const Index m = samples.m();
  Scores total;
  total.residual = Vector::Zero(m);
  total.labels = Vector::Zero(m);
  parallel.each((samples.n() + kBlock - 1) / kBlock, [&] {
    return [&, q_block = Matrix(kBlock, m), confidence = Vector(kBlock),
            predicted = std::vector<std::int64_t>(kBlock)](Index task) mutable {
      const Index begin = task * kBlock;
      const Index rows = std::min(kBlock, samples.n() - begin);
      const std::int64_t* labels = samples.labels + begin;
      const Vector w = weights_of(samples, begin, rows);
      MatrixRef q = q_block.topRows(rows);
      samples.probs.load(begin, rows, q);
      top_label(q, confidence.data(), predicted.data());
      Scores sum;
      sum.weight = w.sum();
      sum.confidence = w.dot(confidence.head(rows));
      sum.sharpness = w.dot(q.rowwise().squaredNorm());
      sum.labels = Vector::Zero(m);
      for (Index i = 0; i < rows; ++i) {
        if (predicted[static_cast<std::size_t>(i)] == labels[i]) sum.hits += w[i];
        sum.log_loss -= w[i] * std::log(q(i, labels[i]));
        sum.labels[labels[i]] += w[i];
      }
      residuals_in_place(labels, q);
      sum.brier = w.dot(q.rowwise().squaredNorm());
      sum.residual = q.transpose() * w;
      parallel.in_turn(task, [&] {
        total.weight += sum.weight;
        total.hits += sum.hits;
        total.confidence += sum.confidence;
        total.brier += sum.brier;
        total.log_loss += sum.log_loss;
        total.sharpness += sum.sharpness;
        total.residual += sum.residual;
        total.labels += sum.labels;
      });
    };
  });
  return total;
}

}  // namespace ckce
