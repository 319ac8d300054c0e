// The file format of tile tables: JSON with a version, the measured hardware, and groups of
// entries.
//
//   {"version": 1,
//    "hardware": {"cpu": …, "vendor": …, "family": …, "model": …, "isa": …, "l1": …, "l2": …},
//               (for a GPU: "gpu" in place of "cpu")
//    "tiles": [{"kind": "dense", "device": "cpu", "dtype": "bfloat16", "isa": "avx512bf16",
//               "n": 896, "k": 4864, "tokens": [[1, 1, 4, 4], …]}]}
//
// An entry of "tokens" is the token bucket followed by the tile. On CPUs: rows, panels, chains. On
// GPUs ("device": "cuda", "isa": "sm_80" to "sm_120"): the bucket counts a launch's tiles of
// tokens, followed by width, warps, stages, splits. All entries are for the hardware's device.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/tiles/hardware.h"
#include "kernels/tiles/tile_table.h"

namespace valora::kernels {

struct TileFile {
  Hardware hardware;
  TileTable table;
};

// Strict. Errors name the location in the file: an unknown field, a value out of range, a tile that
// the processor does not support, a duplicate entry, or a device other than the hardware's. `what`
// names the source in messages.
Result<TileFile> parse_tile_file(std::string_view text, const std::string& what);
Result<TileFile> read_tile_file(const std::string& path);
std::string tile_file_text(const TileFile& file);
// Atomic: writes a temporary file and renames it. Creates the folder if necessary.
Status write_tile_file(const std::string& path, const TileFile& file);

}  // namespace valora::kernels
