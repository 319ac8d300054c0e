// Warnings about values that can be served, but that training does not leave.
#pragma once

#include <string>
#include <vector>

#include "adapters/adapter_spec.h"

namespace valora::adapters {

// Why no low-rank product has an effect ("lora_alpha is 0"); empty if one may have. Values that
// were not read may be anything.
std::string idle_products(const std::vector<LoraTarget>& targets);

// Warns of a lora_A that is all zeros, which is what an incomplete copy has where it was not
// written yet, and, if `idle` is not empty, that the adapter changes nothing. Call it last.
void warn_of_values(const SafeTensors& file, const std::string& idle, AdapterSpec& spec);

}  // namespace valora::adapters
