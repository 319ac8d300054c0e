#include "ops/delta/state_arena.h"

namespace valora::ops {

StateArena::StateArena(const PoolMemory& pool, StateLayout layout, at::Device device)
    : pool_(pool), layout_(std::move(layout)) {
  if (device.is_cpu()) return;
  const StateShape& s = shape();
  TORCH_CHECK(pool.block_bytes() <= INT32_MAX, "states in blocks of ", pool.block_bytes(),
              " bytes");
  const at::Tensor places = at::empty({s.layers, s.taps - 1 + s.value_heads, 2}, at::kInt);
  auto* next = places.mutable_data_ptr<int32_t>();
  const auto add = [&](StateLayout::Place place) {
    *next++ = place.block;
    *next++ = static_cast<int32_t>(place.offset);
  };
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    for (int64_t row = 0; row + 1 < s.taps; ++row) add(layout_.row(layer, row));
    for (int64_t head = 0; head < s.value_heads; ++head) add(layout_.head(layer, head));
  }
  places_ = places.to(device);
}

}  // namespace valora::ops
