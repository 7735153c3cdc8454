// The matrix types everything else is written in. Matrices are column-major.
#pragma once

#include <Eigen/Dense>
#include <cstddef>

namespace ckce {

using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using MatrixRef = Eigen::Ref<Matrix>;
using In = Eigen::Ref<const Matrix>;
using FloatMatrix = Eigen::MatrixXf;
using FloatMatrixRef = Eigen::Ref<FloatMatrix>;
using FloatIn = Eigen::Ref<const FloatMatrix>;

inline std::size_t as_size(Index i) { return static_cast<std::size_t>(i); }

}  // namespace ckce
