// Builds linears whose index and sizes come from the model's module table, so that these are listed
// only once.
#pragma once

#include <string>

#include "adapters/targets/module_table.h"
#include "models/decoder/layers.h"

namespace valora::models {

// The linear with this canonical name, which must be in the table.
inline Linear table_linear(Weights& weights, const adapters::ModuleTable& table,
                           const std::string& name, bool bias) {
  const int index = table.find(name).value();
  const adapters::Module& module = table.modules()[static_cast<size_t>(index)];
  return Linear(weights, name, module.in, module.out, bias, index,
                module.in_decoder() ? LinearPart::kDecoder : LinearPart::kOther, module.partition);
}

}  // namespace valora::models
