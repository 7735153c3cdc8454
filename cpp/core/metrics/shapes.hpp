// The shapes X of whole vectors that miscalibration fits without penalty, see miscalibration.hpp.
#pragma once

#include "core/base/types.hpp"

namespace ckce {

constexpr Index kShapes = 3;

// sqrt(q), q^2 and 1, each divided by its sum, minus q: what flatter, sharper and uniform
// predictions would change. (rows, kShapes m), shape after shape
Matrix shapes(const In& q);

// sum_l shape_l fit_l. (rows, m)
Matrix fitted_shapes(const Matrix& x, const Vector& fit);

// v_i = V_i'r_i. (rows, kShapes)
Matrix scores_of(const Matrix& v, const In& r);
// The same with x turned into V = x - phi spread.
Matrix shape_scores(Matrix& x, const In& phi, const Matrix& spread, const In& r);

}  // namespace ckce
