// Finds this machine's tile table: the file that the user names, or else the user's own file
// written by `valora tune`, or else a shipped table.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/tiles/hardware.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

// $XDG_CACHE_HOME/valora/tiles-<hardware>.json, or ~/.cache/valora/tiles-<hardware>.json. Empty if
// neither XDG_CACHE_HOME nor HOME is set.
std::string own_tiles_path(const Hardware& hardware);

// One of share/tiles/*.json, compiled in.
struct ShippedTiles {
  const char* name;
  const char* text;
};
std::span<const ShippedTiles> shipped_tiles();

struct FoundTiles {
  std::shared_ptr<const TileTable> table;  // an empty table if none matches
  std::string source;                      // for messages: a path, "shipped: …", or empty
};
// named: the value of --tiles, or empty. A table for other hardware is skipped and logged. A
// malformed table is an error if it was named; otherwise it is skipped and logged.
Result<FoundTiles> find_tiles(const std::string& named, const std::string& own_path,
                              const Hardware& hardware, std::span<const ShippedTiles> shipped);
// Calls find_tiles() for this machine's hardware, then use_tiles().
Status load_tiles(const std::string& named, const Hardware& hardware = this_hardware());

}  // namespace valora::kernels
