// Draws a token from a row of logits.
#pragma once

#include <optional>

#include "serving/sampling/logit_row.h"
#include "serving/sampling/sampling_settings.h"

namespace valora::serving {

// Whether every token of a row can be drawn, whatever its probability.
inline bool draws_from_all(const SamplingSettings& settings) {
  return settings.temperature > 0 && settings.top_k == 0 && settings.top_p >= 1 &&
         settings.min_p == 0;
}

// best: of the row, with a finite logit. settings: with a temperature. uniform: in [0, 1). Nothing
// if the row lacks something (LogitRow::missing()); a whole row lacks nothing.
std::optional<int32_t> draw(LogitRow& row, const Candidate& best, const SamplingSettings& settings,
                            double uniform);

}  // namespace valora::serving
