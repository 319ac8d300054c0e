// What of a checkpoint becomes integers, and what config.json then says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/safetensors.h"
#include "generator/quantise/options.h"
#include "models/spec/model_spec.h"

namespace valora::generator {

struct PlannedLinear {
  int module = 0;     // in the module table
  std::string name;   // in the checkpoint, without ".weight"
  size_t file = 0;    // index into QuantisePlan::files
  int64_t group = 0;  // inputs per scale
  TensorView weight;  // [out, in], of the mapped file
};

struct QuantisePlan {
  std::vector<std::shared_ptr<const SafeTensors>> files;  // mapped
  std::vector<PlannedLinear> linears;                     // of the decoder, in its order
  std::vector<std::string> kept;  // names of the other linears, in all their spellings
};

// kUnprocessable if a linear of the decoder is missing, or is stored in another form than floats of
// 16 or 32 bits.
Result<QuantisePlan> plan_quantisation(const QuantiseOptions& options,
                                       const models::ModelSpec& spec);

// The "quantization_config" of the plan, in the form of compressed-tensors. Linears whose inputs
// the group does not divide have a scale per output, and a group of settings of their own.
OrderedJson quantization_config(const QuantiseOptions& options, const QuantisePlan& plan,
                                const models::ModelSpec& spec);

int bits_of(QuantiseScheme scheme);
// Of linears whose inputs it divides; 0: a scale per output.
int64_t group_of(const QuantiseOptions& options);

}  // namespace valora::generator
