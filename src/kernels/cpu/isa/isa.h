// Which instruction set's kernels run: the best one that the CPU has, or the one that
// VALORA_ISA names.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/types/processor.h"

namespace valora::kernels {

// "avx512bf16", "avx512", "avx2" or "portable": what VALORA_ISA takes.
std::string_view isa_name(Isa isa);

// Those this CPU and its operating system run, best first; the last is kPortable.
std::span<const Isa> supported_isas();

// The one of `supported` with this name; its first where `name` is empty. kInvalidArgument for a
// name that is unknown or not among them.
Result<Isa> choose_isa(std::string_view name, std::span<const Isa> supported);

// Takes what VALORA_ISA says for all kernels from here on. To be called at start, where its error
// can be shown.
Status select_isa();

// The one in use. Before any select_isa() or set_isa() it takes what VALORA_ISA says, and where
// that cannot be, the best one, with a warning in the log.
Isa isa();

// For tests and benchmarks that compare them: `isa` must be supported, and no kernel may be
// running.
void set_isa(Isa isa);

}  // namespace valora::kernels
