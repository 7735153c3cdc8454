// Run by CMake, which builds for the level of this CPU.
#include <cstdio>

#include "cpu_level.hpp"

int main() { return std::puts(best_level()) < 0; }
