// Options of `vllm serve` that need no setting here or are not supported.
#pragma once

#include <span>

namespace valora::cli {

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
