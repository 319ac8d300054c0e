// Selects the instruction set of the kernels: the best one that the CPU has, or the one that the
// environment variable VALORA_ISA names.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/types/processor.h"

namespace valora::kernels {

// "avx512bf16", "avx512", "avx2" or "portable", as in VALORA_ISA.
std::string_view isa_name(Isa isa);

// The instruction sets that this CPU and its operating system support, best first. The last is
// kPortable.
std::span<const Isa> supported_isas();

// The element of `supported` with this name, or the first one if `name` is empty. kInvalidArgument
// if the name is unknown or not supported.
Result<Isa> choose_isa(std::string_view name, std::span<const Isa> supported);

// Selects the instruction set that VALORA_ISA names. Call it at startup, where the user sees the
// error.
Status select_isa();

// The instruction set in use. If neither select_isa() nor set_isa() was called, it is selected by
// VALORA_ISA; if that value is invalid, it is the best one, and a warning is logged.
Isa isa();

// For tests and benchmarks. `isa` must be supported, and no kernel may be running.
void set_isa(Isa isa);

}  // namespace valora::kernels
