#include <Eigen/Eigenvalues>

#include "core/linalg/products.hpp"

namespace ckce {

Eigenpairs eigenpairs_of(const In& a) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(a);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Vector eigenvalues_of(const In& a) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(a, Eigen::EigenvaluesOnly).eigenvalues();
}

}  // namespace ckce
