// The tensors of a loaded model's checkpoint, for comparison with copies stored in adapters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/targets/module_table.h"
#include "adapters/tensors/base_weights.h"
#include "models/weights/weights.h"

namespace valora::models {

struct LoadedModel;

// True if the output layer uses the embedding's weights, whether or not the checkpoint stores both.
bool shares_embeddings(const LoadedModel& loaded);

// Reads the values from the checkpoint's files, so it keeps no copy in memory. Compares in the
// dtype that the model runs in.
class CheckpointWeights final : public adapters::BaseWeights {
 public:
  // `loaded` must have its model and weights, and outlive this object.
  explicit CheckpointWeights(const LoadedModel& loaded);

  std::optional<std::vector<int64_t>> shape_of(const std::string& name) const override;
  Result<bool> equal(const std::string& name, size_t first, const TensorView& piece) const override;
  Result<std::vector<float>> values_of(const std::string& name) const override;
  // Runs on the calling thread only, some rows at a time.
  Result<std::vector<float>> row_norms(const std::string& name, const TensorView& a,
                                       const TensorView& b, float scale) const override;
  Result<std::vector<float>> column_norms(const std::string& name, const TensorView& a,
                                          const TensorView& b, float scale) const override;
  bool tied() const override { return !embeddings_.empty(); }

 private:
  // The name of the tensor in `weights_`; nullopt if there is none.
  std::optional<std::string> canonical(const std::string& name) const;

  // The rows of a linear as the model serves it, or of the embedding as the model looks them up.
  Result<Weights::ReadRows> rows_of(const std::string& name) const;

  Weights& weights_;
  const adapters::ModuleTable& modules_;
  std::vector<adapters::PrefixAlias> aliases_;
  std::string embeddings_;  // the embedding's tensor if it is also the output layer; else empty
};

}  // namespace valora::models
