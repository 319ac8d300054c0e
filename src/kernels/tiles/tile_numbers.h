// Converts between a tile and its numbers in a tile file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/tiles/tile.h"

namespace valora::kernels {

// How many numbers a tile has, and their names: "rows, panels, chains".
size_t tile_number_count(Device device);
const char* tile_number_names(Device device);

std::vector<int64_t> tile_numbers(const Tile& tile);
// numbers: tile_number_count(device) values >= 1. nullopt if a value overflows its field.
std::optional<Tile> tile_of_numbers(Device device, std::span<const int64_t> numbers);
// "3 rows, 2 panels and 1 chains"
std::string tile_text(Device device, std::span<const int64_t> numbers);

}  // namespace valora::kernels
