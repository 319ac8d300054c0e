// Tables of tiles as files: JSON with a version, the hardware that was measured, and groups of
// entries.
//
//   {"version": 1,
//    "hardware": {"cpu": …, "vendor": …, "family": …, "model": …, "isa": …, "l1": …, "l2": …},
//    "tiles": [{"kind": "dense", "device": "cpu", "dtype": "bfloat16", "isa": "avx512bf16",
//               "n": 896, "k": 4864, "tokens": [[1, 1, 4, 4], …]}]}
//
// An entry of "tokens" is the tokens' bucket, then the tile: rows, panels, chains of a CPU's;
// block_m, block_n, block_k, warps_m, warps_n, stages, split_k of a GPU's ("device": "cuda", "isa":
// "sm_80" or "sm_90a").
#pragma once

#include <span>
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

// Devices that this build has kernels for.
std::span<const Device> built_devices();

// Strict: an unknown field, a value out of range, a tile that the processor has not, an entry that
// comes twice, or a device that is not among `built` is an error that names its place. `what` names
// the source in messages.
Result<TileFile> parse_tile_file(std::string_view text, const std::string& what,
                                 std::span<const Device> built = built_devices());
Result<TileFile> read_tile_file(const std::string& path);
std::string tile_file_text(const TileFile& file);
// Through a file of another name beside it, so that a reader sees the old or the new one; makes the
// folder.
Status write_tile_file(const std::string& path, const TileFile& file);

}  // namespace valora::kernels
