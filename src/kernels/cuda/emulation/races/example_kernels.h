// Kernels with and without races, for the tests of the check. Each launches kBlocks blocks of
// kThreads threads.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"

namespace valora::kernels::cuda::emulation {

inline constexpr unsigned kThreads = 64, kBlocks = 3;

enum class Order : uint8_t { kNone, kWarp, kBlock };

// Each thread writes a value, reads that of thread ^ step, and writes its own again. first, second:
// what orders the write and the read, and the read and the next write.
Status exchange_values(Order first, Order second, unsigned step, float* out);
// Each thread reads its neighbour's value after a shuffle.
Status read_after_shuffle(float* out);
// All threads of a block read a value, which one of them then writes.
Status write_after_reads(Order order, float* values);
// Each thread writes one byte.
Status write_bytes(uint8_t* bytes);
// All blocks write the same value.
Status write_from_all_blocks(float* value);
// All blocks read a value that one of them writes.
Status read_what_block_writes(float* values);
// The last block adds up what all blocks wrote. order: before a block counts itself.
Status add_in_last_block(Order order, float* parts, unsigned* counter, float* sum);
// Threads read what cp.async of another thread copies, before its wait.
Status read_before_wait(const float* values, float* out);

}  // namespace valora::kernels::cuda::emulation
