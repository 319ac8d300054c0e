// The registry of model families, and the loading of models. To add a family, see
// docs/adding-a-family.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core_sets.h"
#include "models/model.h"
#include "models/spec/family.h"

namespace valora::models {

const std::vector<Family>& families();
// The family of config.json's architecture. kUnprocessable lists the supported ones if it is
// unknown or missing.
Result<const Family*> find_family(const ConfigReader& config);

struct LoadedModel {
  // Of the files; mapped for training, whose tensors may be views of them.
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Model> model;  // of rank 0
  // Of the other ranks. They have the same spec; their towers and embeddings are rank 0's.
  std::vector<std::unique_ptr<Model>> others;
  const Family* family = nullptr;
  at::ScalarType dtype = at::kFloat;
  int64_t parameters = 0;
  std::vector<std::string> unused_tensors;
  std::optional<QuantisedReport> quantised;  // absent if the folder is not
};

enum class ModelUse {
  // The fastest form for device and backend, in memory of its own: what happens to the files later
  // does not matter.
  kServing,
  // Plain tensors, through which gradients flow; views of the mapped file if it has the dtype.
  kTraining,
};
// The ranks that share a model, for ModelUse::kServing with the native kernels of CPUs and heads
// that check_ranks() accepts.
struct ModelRanks {
  Communicator* communicator = nullptr;  // null: one rank. It must outlive the models.
  // CPUs of each, near which its weights should be; empty: anywhere.
  std::vector<CoreSet> cores;
};
// Loads a model folder. rounding: for ModelUse::kServing on CPUs. dtype: if absent, that of
// config.json, else that of the checkpoint. kNotFound: no folder or no weights. kUnprocessable: the
// family is unknown, a tensor is missing or has another shape, kHalf on a CPU, or a `rounding`
// that cannot be had.
Result<LoadedModel> load_model(const std::string& dir, std::optional<at::ScalarType> dtype,
                               at::Device device, ModelUse use = ModelUse::kServing,
                               Rounding rounding = {}, const ModelRanks& ranks = {});
// kInvalidArgument, with the numbers, if the heads do not divide among so many ranks.
Status check_ranks(const ModelSpec& spec, int ranks);
// Tells the weights what the configuration says of quantised linears. Throws LoadError.
void set_quantisation(const ConfigReader& config, Weights& weights);
// The dtype that load_model() uses for a checkpoint whose weights are `stored`.
Result<at::ScalarType> resolve_dtype(std::optional<at::ScalarType> asked,
                                     const ConfigReader& config, at::ScalarType stored,
                                     at::Device device);
// Family::spec, with a LoadError as a Result.
Result<ModelSpec> read_model_spec(const Family& family, const ConfigReader& config);

}  // namespace valora::models
