// Which table of tiles an engine takes: one that the user names, else the user's own as `valora
// tune` left it, else one that came with the program.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "kernels/tiles/hardware.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

// $XDG_CACHE_HOME/valora/tiles-<hardware>.json, else the same in ~/.cache; empty where there is
// neither.
std::string own_tiles_path(const Hardware& hardware);

// share/tiles/*.json, compiled in.
struct ShippedTiles {
  const char* name;
  const char* text;
};
std::span<const ShippedTiles> shipped_tiles();

struct FoundTiles {
  std::shared_ptr<const TileTable> table;  // empty where none fits
  std::string source;                      // for people: a path, "shipped: …", or empty
};
// named: --tiles; empty: none. A table of other hardware is passed over with a line in the log; a
// broken one too, unless it is the named one: that is an error.
Result<FoundTiles> find_tiles(const std::string& named, const std::string& own_path,
                              const Hardware& hardware, std::span<const ShippedTiles> shipped);
// find_tiles of this machine, then use_tiles.
Status load_tiles(const std::string& named);

}  // namespace valora::kernels
