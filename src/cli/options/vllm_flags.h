// Flags of `vllm serve` that need no setting here, so that vLLM command lines work unchanged.
#pragma once

#include <string>
#include <vector>

#include "cli/options/parser.h"

namespace valora::cli {

// For each flag given, parsing appends a line to `notes` that says what the flag means here. An
// unsupported value is an error.
void add_vllm_flags(Command command, std::vector<std::string>& notes);

}  // namespace valora::cli
