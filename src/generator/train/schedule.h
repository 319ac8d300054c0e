// The learning rate schedule.
#pragma once

#include <cstdint>

namespace valora::generator {

// The factor on the maximum learning rate at step 0 … steps - 1: linear from 0 over `warmup` steps,
// then half a cosine down to 0 (get_cosine_schedule_with_warmup in transformers).
double cosine_rate(int64_t step, int64_t steps, int64_t warmup);

}  // namespace valora::generator
