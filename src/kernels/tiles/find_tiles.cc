#include "kernels/tiles/find_tiles.h"

#include <spdlog/spdlog.h>

#include <optional>

#include "base/files/cache_folder.h"
#include "base/files/file.h"
#include "kernels/tiles/choose.h"
#include "kernels/tiles/tile_file.h"

namespace valora::kernels {
namespace {

std::optional<FoundTiles> if_for(const Hardware& hardware, TileFile file,
                                 const std::string& source) {
  if (file.hardware == hardware)
    return FoundTiles{std::make_shared<const TileTable>(std::move(file.table)), source};
  spdlog::info("{} was measured on other hardware and is not used: {}; this is {}", source,
               file.hardware.text(), hardware.text());
  return std::nullopt;
}

}  // namespace

std::string own_tiles_path(const Hardware& hardware) {
  return cache_path("tiles-" + hardware.digest() + ".json");
}

Result<FoundTiles> find_tiles(const std::string& named, const std::string& own_path,
                              const Hardware& hardware, std::span<const ShippedTiles> shipped) {
  if (!named.empty()) {
    VALORA_TRY(file, read_tile_file(named));
    if (auto found = if_for(hardware, std::move(file), named)) return std::move(*found);
  }
  if (!own_path.empty() && file_exists(own_path)) {
    auto file = read_tile_file(own_path);
    if (!file.ok())
      spdlog::warn("{}; it is not used", file.error().message);
    else if (auto found = if_for(hardware, std::move(*file), own_path))
      return std::move(*found);
  }
  for (const ShippedTiles& tiles : shipped) {
    VALORA_TRY(file, parse_tile_file(tiles.text, std::string("shipped tiles ") + tiles.name));
    if (file.hardware.same_kind(hardware))
      return FoundTiles{std::make_shared<const TileTable>(std::move(file.table)),
                        std::string("shipped: ") + tiles.name};
  }
  return FoundTiles{std::make_shared<const TileTable>(), ""};
}

Status load_tiles(const std::string& named, const Hardware& hardware) {
  VALORA_TRY(found, find_tiles(named, own_tiles_path(hardware), hardware, shipped_tiles()));
  if (found.source.empty())
    spdlog::info(
        "no tile table for this {}: a formula chooses the tiles; `valora tune` measures them",
        hardware.device == Device::kCuda ? "GPU" : "CPU");
  else
    spdlog::info("tiles: {}, {} entries", found.source, found.table->size());
  use_tiles(std::move(found.table));
  return {};
}

}  // namespace valora::kernels
