// What a start and `valora inspect` say of a quantised checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora::models {

// The format of GGUF files, whose encoding is the types of their blocks.
inline constexpr char kGgufFormat[] = "GGUF";

struct QuantisedReport {
  std::string format;             // "AWQ"
  std::string encoding;           // "4 bits in groups of 128"
  int64_t linears = 0;            // that are quantised
  int64_t integers = 0;           // of these, that are served in integers; the others are decoded
  int64_t parameters = 0;         // of these
  std::vector<std::string> kept;  // linears that are stored in floats

  // "196 linears of 4 bits in groups of 128 (AWQ), served in integers; 1 as it is: lm_head". dtype:
  // that of decoded weights.
  std::string text(const std::string& dtype) const;
};

}  // namespace valora::models
