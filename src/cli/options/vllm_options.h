// Options of `vllm serve` that need no setting here, or that cannot be served.
#pragma once

#include <span>

namespace valora::cli {

struct VllmOption {
  enum class Takes { kNothing, kNumber, kText, kTexts };

  const char* name;  // "--name"
  Takes takes;
  const char* served;    // the values that are served, as "a|b"; "": any, or none if it is refused
  const char* note;      // what the option means here, or why other values are refused
  bool refused = false;  // whatever its value
};

// All of them, in the order in which help lists them.
std::span<const VllmOption> vllm_options();

}  // namespace valora::cli
