// For tests: one call of a projection with adapters, described as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora::ops::conformance {

struct Adapter {
  std::vector<int64_t> ranks;  // per slice; 0: slice not adapted
};

struct Use {
  int64_t begin = 0, end = 0;  // tokens
  int adapter = 0;
  float coefficient = 1;
};

struct Case {
  std::string name;
  int64_t in = 0;
  std::vector<int64_t> outs;  // one to three linears
  int64_t tokens = 0;
  std::vector<Adapter> adapters;
  std::vector<Use> uses;
  bool gated = false;  // ops::gated of two linears
};

}  // namespace valora::ops::conformance
