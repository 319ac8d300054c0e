// attend() of byte_tile.h for few rows.
#pragma once

#include "kernels/cpu/attention/byte_tile.h"

namespace valora::kernels {

template <typename T>
void attend_in_registers(const QueryTile<T>& tile, const ByteBlocks& blocks,
                         const PartialAttention& partial);

}  // namespace valora::kernels
