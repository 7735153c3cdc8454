// Smooth ECE (Blasiok and Nakkiran 2023), in the discretisation of their library relplot:
// smECE_s = int |r_s(t)| dt / int d_s(t) dt, with r_s(t) = sum_i w_i k_s(t, p_i) (p_i - h_i), d_s
// the same sum without p_i - h_i, and k_s a Gaussian of width s that is reflected at 0 and 1.
#pragma once

#include "core/base/parallel.hpp"
#include "core/base/samples.hpp"

namespace ckce {

struct SmoothEce {
  double value = 0.0;      // smECE_s at s = bandwidth
  double bandwidth = 0.0;  // s: the multiple of 1/1024 just above the root of smECE_s = s
  double at_ends = 0.0;    // share of the rows with p_i = 0 or 1, which count half
};

// Of the confidence p_i in the predicted class and h_i = [it is the label]. One column is always
// the predicted class, so label 0 is then a hit.
// O(n m) once, then O(n) for each of at most seven grids; O(n) memory
SmoothEce smooth_ece(const Samples& samples, Parallel& parallel);

}  // namespace ckce
