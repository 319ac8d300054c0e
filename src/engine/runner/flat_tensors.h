// Converts flat tokens to the tensors of a batch.
#pragma once

#include <ATen/ATen.h>

#include "models/batch.h"
#include "serving/batch/flat_tokens.h"

namespace valora {

// A batch with these tokens, positions, lengths and spans, in host memory.
models::Batch flat_batch(const serving::FlatTokens& flat);
// Moves the batch's tensors to the device.
void to_device(models::Batch& batch, at::Device device);

}  // namespace valora
