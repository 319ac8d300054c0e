// The base model's tensors, which an adapter's file may repeat, and reading of such adapters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"

namespace valora::adapters {

// Thread-safe. Names are a module's in any release's spelling and ".weight" or ".bias".
class BaseWeights {
 public:
  virtual ~BaseWeights() = default;
  // Absent if the model has no such tensor.
  virtual std::optional<std::vector<int64_t>> shape_of(const std::string& name) const = 0;
  // True if `piece`, [n], equals the n values of the tensor from index `first` on, in the dtype
  // that the model runs in, so that the model computes the same with either. Error: the checkpoint
  // cannot be read.
  virtual Result<bool> equal(const std::string& name, size_t first,
                             const TensorView& piece) const = 0;
  // The values of a tensor that the model has, as it computes with them. Error: as equal().
  virtual Result<std::vector<float>> values_of(const std::string& name) const = 0;
  // The norm of each row of W + scale · B A for the linear W of this name: [out]. a: [rank, in], b:
  // [out, rank]. kUnprocessable if the model's values of W are not those of its files.
  virtual Result<std::vector<float>> row_norms(const std::string& name, const TensorView& a,
                                               const TensorView& b, float scale) const = 0;
  // Whether the output layer's weights are the embedding's.
  virtual bool tied() const = 0;
};

// As without `base`, but tensors of the base model in the file are compared with `base`'s, piece by
// piece and without memory for them. Equal ones are passed over; AdapterSpec::bytes and the digests
// do not count them. Others become parts and shifts, or are refused. Further error: kConflict if
// the file is replaced during the comparison.
Result<AdapterSpec> read_adapter(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits, const BaseWeights& base);
Result<AdapterSpec> read_adapter_headers(const FolderPath& where, const ModuleTable& modules,
                                         const AdapterLimits& limits, const BaseWeights& base);
// The same again, of an adapter that was read so before: passes over tensors of the base model.
Result<AdapterSpec> read_adapter_again(const FolderPath& where, const ModuleTable& modules,
                                       const AdapterLimits& limits);

}  // namespace valora::adapters
