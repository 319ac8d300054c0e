#include "kernels/tiles/tile_numbers.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::kernels {
namespace {

constexpr size_t kCpuNumbers = 3, kCudaNumbers = 7, kCudaWords = 3;

}  // namespace

size_t tile_number_count(Device device) {
  return device == Device::kCpu ? kCpuNumbers : kCudaNumbers;
}

const char* tile_number_names(Device device) {
  return device == Device::kCpu ? "rows, panels, chains"
                                : "block_m, block_n, block_k, warps_m, warps_n, stages, split_k";
}

std::vector<int64_t> tile_numbers(const Tile& tile) {
  if (const CpuTile* t = std::get_if<CpuTile>(&tile)) return {t->rows, t->panels, t->chains};
  const CudaTile& t = std::get<CudaTile>(tile);
  return {t.block_m, t.block_n, t.block_k, t.warps_m, t.warps_n, t.stages, t.split_k};
}

std::optional<Tile> tile_of_numbers(Device device, std::span<const int64_t> n) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(n[i]); };
  const auto word = [&](size_t i) { return static_cast<uint16_t>(n[i]); };
  const size_t words = device == Device::kCpu ? 0 : kCudaWords;
  for (size_t i = 0; i < n.size(); ++i)
    if (n[i] > (i < words ? UINT16_MAX : UINT8_MAX)) return std::nullopt;
  if (device == Device::kCpu) return CpuTile{byte(0), byte(1), byte(2)};
  return CudaTile{word(0), word(1), word(2), byte(3), byte(4), byte(5), byte(6)};
}

std::string tile_text(Device device, std::span<const int64_t> n) {
  if (device == Device::kCpu)
    return fmt::format("{} rows, {} panels and {} chains", n[0], n[1], n[2]);
  return fmt::format("blocks of {} x {} x {}, {} x {} warps, {} stages and {} parts of k", n[0],
                     n[1], n[2], n[3], n[4], n[5], n[6]);
}

}  // namespace valora::kernels
