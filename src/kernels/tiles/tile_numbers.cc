#include "kernels/tiles/tile_numbers.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::kernels {
namespace {

constexpr size_t kCpuNumbers = 3, kCudaNumbers = 4, kCudaWords = 1;

}  // namespace

size_t tile_number_count(Device device) {
  return device == Device::kCpu ? kCpuNumbers : kCudaNumbers;
}

const char* tile_number_names(Device device) {
  return device == Device::kCpu ? "rows, panels, chains" : "width, warps, stages, splits";
}

std::vector<int64_t> tile_numbers(const Tile& tile) {
  if (const CpuTile* t = std::get_if<CpuTile>(&tile)) return {t->rows, t->panels, t->chains};
  const CudaTile& t = std::get<CudaTile>(tile);
  return {t.width, t.warps, t.stages, t.splits};
}

std::optional<Tile> tile_of_numbers(Device device, std::span<const int64_t> n) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(n[i]); };
  const size_t words = device == Device::kCpu ? 0 : kCudaWords;
  for (size_t i = 0; i < n.size(); ++i)
    if (n[i] > (i < words ? UINT16_MAX : UINT8_MAX)) return std::nullopt;
  if (device == Device::kCpu) return CpuTile{byte(0), byte(1), byte(2)};
  return CudaTile{static_cast<uint16_t>(n[0]), byte(1), byte(2), byte(3)};
}

std::string tile_text(Device device, std::span<const int64_t> n) {
  if (device == Device::kCpu)
    return fmt::format("{} rows, {} panels and {} chains", n[0], n[1], n[2]);
  return fmt::format("width {}, {} warps, {} stages and {} splits", n[0], n[1], n[2], n[3]);
}

}  // namespace valora::kernels
