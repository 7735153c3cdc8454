// Before everything else in builds with CKCE_SANITIZE: a broken assertion of Eigen is an exception,
// and so a failed test.
#pragma once

#include <stdexcept>

#define eigen_assert(x) \
  (static_cast<bool>(x) ? static_cast<void>(0) : throw std::logic_error("eigen_assert: " #x))
