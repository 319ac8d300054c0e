// Options of `vllm serve` that need no setting here, so that vLLM command lines work unchanged, or
// are not supported.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options/parser.h"

namespace valora::cli {

// For each flag given, parsing appends a line to `notes` that says what the flag means here. An
// unsupported value is an error.
void add_vllm_flags(Command command, std::vector<std::string>& notes);

struct VllmOption {
  enum class Takes { kNothing, kNumber, kText, kTexts };

  const char* name;  // "--name"
  Takes takes;
  const char* served;    // supported values, as "a|b"; "": any, or none if refused
  const char* note;      // what the option means here, or why other values are refused
  bool refused = false;  // any value is an error
};

// In the order listed by --help.
std::span<const VllmOption> vllm_options();

}  // namespace valora::cli
