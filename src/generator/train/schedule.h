// The learning rate over a training.
#pragma once

#include <cstdint>

namespace valora::generator {

// Of the highest rate, at step 0 … steps - 1: linear from 0 over the first `warmup` steps, then
// half a cosine down to 0 (transformers' get_cosine_schedule_with_warmup).
double cosine_rate(int64_t step, int64_t steps, int64_t warmup);

}  // namespace valora::generator
