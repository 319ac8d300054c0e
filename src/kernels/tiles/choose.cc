#include "kernels/tiles/choose.h"

#include <array>
#include <atomic>
#include <mutex>

namespace valora::kernels {
namespace {

struct InUse {
  std::mutex mutex;
  std::shared_ptr<const TileTable> table = std::make_shared<const TileTable>();
  // Incremented after the table has been replaced, so that choices cached under the new number come
  // from the new table.
  std::atomic<uint64_t> number = 1;
};

InUse& in_use() {
  static InUse instance;
  return instance;
}

// A cache per thread, because a search takes microseconds and all layers of a model have the same
// shapes.
template <typename DeviceTile>
struct Remembered {
  TileKey key;
  uint64_t number = 0;
  DeviceTile tile;
};
constexpr size_t kSets = 128, kWays = 4;
template <typename DeviceTile>
struct Memory {
  std::array<std::array<Remembered<DeviceTile>, kWays>, kSets> sets;
  size_t turn = 0;
};

template <typename DeviceTile>
DeviceTile choose(const ProductShape& shape) {
  thread_local Memory<DeviceTile> memory;
  const TileKey key = TileKey::of(shape);
  const uint64_t number = in_use().number.load(std::memory_order_acquire);
  auto& set = memory.sets[key.hash() % kSets];
  for (const auto& entry : set)
    if (entry.number == number && entry.key == key) return entry.tile;
  auto& entry = set[memory.turn++ % kWays];
  entry = {key, number, std::get<DeviceTile>(tiles_in_use()->choose(key))};
  return entry.tile;
}

}  // namespace

std::shared_ptr<const TileTable> tiles_in_use() {
  const std::lock_guard lock(in_use().mutex);
  return in_use().table;
}

void use_tiles(std::shared_ptr<const TileTable> table) {
  const std::lock_guard lock(in_use().mutex);
  in_use().table = std::move(table);
  in_use().number.fetch_add(1, std::memory_order_release);
}

CpuTile choose_cpu_tile(const ProductShape& shape) { return choose<CpuTile>(shape); }
CudaTile choose_cuda_tile(const ProductShape& shape) { return choose<CudaTile>(shape); }

}  // namespace valora::kernels
