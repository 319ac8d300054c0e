// The tensors of a loaded model's checkpoint as adapters may repeat them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/base_weights.h"
#include "adapters/module_table.h"
#include "models/weights.h"

namespace valora::models {

struct LoadedModel;

// Whether the output layer's weights are those of the embeddings, whatever the checkpoint has.
bool shares_embeddings(const LoadedModel& loaded);

// Reads the checkpoint's files, so it takes no memory for them. Compares in the dtype that the
// model runs in.
class CheckpointWeights final : public adapters::BaseWeights {
 public:
  // loaded: with its model and weights, which must outlive this.
  explicit CheckpointWeights(const LoadedModel& loaded);

  std::optional<std::vector<int64_t>> shape_of(const std::string& name) const override;
  Result<bool> equal(const std::string& name, size_t first, const TensorView& piece) const override;
  Result<std::vector<float>> values_of(const std::string& name) const override;
  Result<std::vector<float>> row_norms(const std::string& name, const TensorView& a,
                                       const TensorView& b, float scale) const override;
  bool tied() const override { return !embeddings_.empty(); }

 private:
  // The name under which `weights_` has a tensor; absent if it has none.
  std::optional<std::string> canonical(const std::string& name) const;

  const Weights& weights_;
  const adapters::ModuleTable& modules_;
  std::vector<adapters::PrefixAlias> aliases_;
  std::string embeddings_;  // the name of the tensor that is the output layer's, too; else empty
};

}  // namespace valora::models
