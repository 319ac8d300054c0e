#include "engine/runner/flat_tensors.h"

namespace valora {

models::Batch flat_batch(const serving::FlatTokens& flat) {
  models::Batch batch;
  batch.tokens = batch.host_tokens = at::tensor(flat.ids, at::kLong);
  std::vector<at::Tensor> axes;
  for (const auto& axis : flat.positions) axes.push_back(at::tensor(axis, at::kLong));
  batch.positions = at::stack(axes);
  if (!flat.rope_lengths.empty()) batch.rope_lengths = at::tensor(flat.rope_lengths, at::kLong);
  batch.spans = flat.spans;
  batch.state_spans = flat.states;
  return batch;
}

void to_device(models::Batch& batch, at::Device device) {
  batch.tokens = batch.tokens.to(device);
  batch.positions = batch.positions.to(device);
  if (batch.rope_lengths.defined()) batch.rope_lengths = batch.rope_lengths.to(device);
}

}  // namespace valora
