// The one list of samplers.
#include <cmath>
#include <stdexcept>

#include "core/samplers/gaussian.hpp"
#include "core/samplers/orthogonal.hpp"
#include "core/samplers/sampler.hpp"
#include "core/samplers/sobol.hpp"

namespace ckce {
namespace {

// Coordinates in Helmert's basis of the plane orthogonal to (1, ..., 1): (D, m - 1) -> (D, m).
// Column k of the basis is (1, ..., 1, -k, 0, ..., 0) / sqrt(k (k + 1)) with k ones.
Matrix from_helmert(const Matrix& z) {
  const Index m = z.cols() + 1;
  Matrix w = Matrix::Zero(z.rows(), m);
  Vector later = Vector::Zero(z.rows());
  for (Index j = m - 1; j >= 0; --j) {
    const auto k = static_cast<double>(j);
    w.col(j) = later;
    if (j == 0) break;
    const Vector scaled = z.col(j - 1) / std::sqrt(k * (k + 1.0));
    w.col(j) -= k * scaled;
    later += scaled;
  }
  return w;
}

double cauchy_quantile(double u) { return std::tan(3.14159265358979323846 * (u - 0.5)); }

}  // namespace

Matrix draw_frequencies(const std::string& sampler, Spectrum spectrum, Index n_frequencies, Index m,
                        std::uint64_t seed) {
  SplitMix64 random(seed);
  const bool gaussian = spectrum == Spectrum::kGaussian;
  const Index dimension = gaussian ? m - 1 : m;
  if (sampler == "orthogonal" && gaussian)
    return from_helmert(orthogonal_normals(n_frequencies, dimension, random));
  Matrix u;
  if (sampler == "gaussian")
    u = independent_uniforms(n_frequencies, dimension, random);
  else if (sampler == "sobol")
    u = sobol_uniforms(n_frequencies, dimension, random);
  else
    throw std::invalid_argument("sampler '" + sampler + "' is not available for this kernel");
  return gaussian ? from_helmert(u.unaryExpr(&normal_quantile))
                  : Matrix(u.unaryExpr(&cauchy_quantile));
}

}  // namespace ckce
