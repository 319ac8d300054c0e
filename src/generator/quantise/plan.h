// Decides which linears of a checkpoint become integers, and what config.json then says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/tensors/safetensors.h"
#include "generator/quantise/options.h"
#include "models/spec/model_spec.h"

namespace valora::generator {

struct PlannedLinear {
  int module = 0;      // in the module table
  std::string name;    // in the new folder, without ".weight"
  size_t file = 0;     // index into QuantisePlan::files
  std::string tensor;  // the stored one: name + ".weight", or that of all experts of a mixture
  int64_t group = 0;   // inputs per scale
  int64_t out = 0, in = 0;
  // View of the mapped file: [out, in], or if transposed, columns [first, first + out) of [in, ..].
  TensorView weight;
  bool transposed = false;
  int64_t first = 0;
};

struct QuantisePlan {
  std::vector<std::shared_ptr<const SafeTensors>> files;  // mapped
  std::vector<PlannedLinear> linears;                     // the decoder's, in order
  std::vector<std::string> kept;  // names of all other linears, in every spelling
};

// Experts that are one tensor become a linear each. kUnprocessable if a linear of the decoder is
// missing, or is not stored as 16- or 32-bit floats.
Result<QuantisePlan> plan_quantisation(const QuantiseOptions& options,
                                       const models::ModelSpec& spec);

// The plan's "quantization_config" in the form of compressed-tensors. Linears whose inputs are not
// divisible by the group size have one scale per output, and their own group of settings.
OrderedJson quantization_config(const QuantiseOptions& options, const QuantisePlan& plan,
                                const models::ModelSpec& spec);

int bits_of(QuantiseScheme scheme);
// Group size for linears whose inputs it divides; 0: one scale per output.
int64_t group_of(const QuantiseOptions& options);

}  // namespace valora::generator
