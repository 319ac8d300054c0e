// Flags of `vllm serve` that need no setting here, so that its command lines work unchanged.
#pragma once

#include <string>
#include <vector>

#include "cli/options/parser.h"

namespace valora::cli {

// Parsing appends to `notes` one line per given flag, which says what it means here. A value that
// can't be served is an error.
void add_vllm_flags(Command command, std::vector<std::string>& notes);

}  // namespace valora::cli
