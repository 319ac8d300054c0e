// The base model's tensors, which an adapter's file may repeat, and how to read such adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"

namespace valora::adapters {

// Thread-safe. A name is a module's name as spelled in any release, plus ".weight" or ".bias".
class BaseWeights {
 public:
  virtual ~BaseWeights() = default;
  // nullopt if the model has no such tensor.
  virtual std::optional<std::vector<int64_t>> shape_of(const std::string& name) const = 0;
  // True if `piece`, [n], equals the tensor's n values from index `first` on once both are in the
  // model's compute dtype, so that either gives the same results. Error: the checkpoint cannot be
  // read.
  virtual Result<bool> equal(const std::string& name, size_t first,
                             const TensorView& piece) const = 0;
  // The values of an existing tensor, as the model computes with them. Errors: see equal().
  virtual Result<std::vector<float>> values_of(const std::string& name) const = 0;
  // The norm of each row of W + scale · B A, [out], where W is the linear with this name as the
  // model computes with it. a: [rank, in], b: [out, rank]. Error: as equal().
  virtual Result<std::vector<float>> row_norms(const std::string& name, const TensorView& a,
                                               const TensorView& b, float scale) const = 0;
  // The norm of each column of W + scale · (B A)ᵀ, [hidden], where W, [vocabulary, hidden], is the
  // embedding with this name. a: [rank, vocabulary], b: [hidden, rank]. Error: as equal().
  virtual Result<std::vector<float>> column_norms(const std::string& name, const TensorView& a,
                                                  const TensorView& b, float scale) const = 0;
  // True if the output layer shares the embedding's weights.
  virtual bool tied() const = 0;
};

// As without `base`, but compares tensors of the base model in the adapter's file with `base`,
// streaming them. Equal ones are skipped and do not count in AdapterSpec::bytes or the digests;
// others become parts and shifts, or are refused. Additional error: kConflict if the file is
// replaced during the comparison.
Result<AdapterSpec> read_adapter(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits, const BaseWeights& base);
Result<AdapterSpec> read_adapter_headers(const FolderPath& where, const ModuleTable& modules,
                                         const AdapterLimits& limits, const BaseWeights& base);
// Rereads an adapter that was read this way before, skipping tensors of the base model. Its
// warnings are those about values alone. known_digest: the caller knows the digest that it must
// have, so the values are read once.
Result<AdapterSpec> read_adapter_again(const FolderPath& where, const ModuleTable& modules,
                                       const AdapterLimits& limits, bool known_digest);

}  // namespace valora::adapters
