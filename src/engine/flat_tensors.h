// Flat tokens as the tensors of a batch.
#pragma once

#include <ATen/ATen.h>

#include "models/batch.h"
#include "serving/batch/flat_tokens.h"

namespace valora {

// A batch with these tokens, positions, lengths and spans, on the host.
models::Batch flat_batch(const serving::FlatTokens& flat);
// The same on the device.
void to_device(models::Batch& batch, at::Device device);

}  // namespace valora
