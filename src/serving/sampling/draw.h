// Draws a token from a row of logits.
#pragma once

#include <optional>

#include "serving/sampling/logit_row.h"
#include "serving/sampling/sampling_settings.h"

namespace valora::serving {

// True if every token can be drawn, however improbable.
inline bool draws_from_all(const SamplingSettings& settings) {
  return settings.temperature > 0 && settings.top_k == 0 && settings.top_p >= 1 &&
         settings.min_p == 0;
}

// best: the row's best token, with a finite logit. settings: with a temperature. uniform: from 0 to
// below 1. Returns nullopt if the row lacks data (LogitRow::missing()), which a whole row never
// does.
std::optional<int32_t> draw(LogitRow& row, const Candidate& best, const SamplingSettings& settings,
                            double uniform);

}  // namespace valora::serving
