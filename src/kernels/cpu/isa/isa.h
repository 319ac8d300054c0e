// Selects the kernels' instruction set: the best one that the CPU supports, or the one named by the
// environment variable VALORA_ISA.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/types/processor.h"

namespace valora::kernels {

// "amx", "avx512bf16", "avx512", "avxvnni", "avx2", "neonbf16", "neon" or "portable", as in
// VALORA_ISA.
std::string_view isa_name(Isa isa);

// How many sums of 16 outputs the instruction set keeps in registers (kTileSums of its Vectors).
int tile_sums(Isa isa);

// All of them, best first, whether this CPU has them or not.
std::span<const Isa> all_isas();

// The instruction sets supported by this CPU and its operating system, best first. The last is
// kPortable.
std::span<const Isa> supported_isas();

// The element of `supported` with this name, or the first one if `name` is empty. kInvalidArgument
// if the name is unknown or not supported.
Result<Isa> choose_isa(std::string_view name, std::span<const Isa> supported);

// Selects the instruction set named by VALORA_ISA. Call at start-up, where the user sees the error.
Status select_isa();

// The current instruction set. If neither select_isa() nor set_isa() was called, VALORA_ISA selects
// it; if its value is invalid, logs a warning and uses the best one.
Isa isa();

// For tests and benchmarks. `isa` must be supported, and no kernel may be running.
void set_isa(Isa isa);

}  // namespace valora::kernels
