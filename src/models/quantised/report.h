// A summary of a quantised checkpoint, for start-up and `valora inspect`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace valora::models {

// The format name of GGUF files, whose encodings are their block types.
inline constexpr char kGgufFormat[] = "GGUF";

struct QuantisedReport {
  std::string format;      // "AWQ"
  std::string encoding;    // "4 bits in groups of 128"
  int64_t linears = 0;     // quantised linears
  int64_t integers = 0;    // how many of these are served in integers; the others are decoded
  int64_t parameters = 0;  // in the quantised linears
  std::vector<std::string> kept;  // linears that are stored in floats

  // "196 linears of 4 bits in groups of 128 (AWQ), served in integers; 1 not quantised:
  // lm_head". dtype: of decoded weights.
  std::string text(const std::string& dtype) const;
};

}  // namespace valora::models
