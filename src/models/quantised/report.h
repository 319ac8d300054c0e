// What a start and `valora inspect` say of a quantised checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora::models {

struct QuantisedReport {
  std::string format;             // "AWQ"
  std::string encoding;           // "4 bits in groups of 128"
  int64_t linears = 0;            // that are quantised
  int64_t parameters = 0;         // of these
  std::vector<std::string> kept;  // linears that are stored in floats

  // "196 linears of 4 bits in groups of 128 (AWQ); 1 as it is: lm_head"
  std::string text() const;
};

}  // namespace valora::models
