// The registry of model families, and model loading. docs/adding-a-family.md explains how to add a
// family.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/core_sets.h"
#include "models/model.h"
#include "models/spec/family.h"

namespace valora::models {

const std::vector<Family>& families();
// The family for config.json's architecture. If that is unknown or missing, kUnprocessable lists
// the supported ones.
Result<const Family*> find_family(const ConfigReader& config);

struct LoadedModel {
  // The files' tensors; mapped for training, where the model's tensors may be views of them.
  std::unique_ptr<Weights> weights;
  std::unique_ptr<Model> model;  // for rank 0
  // The models of the other ranks. They share rank 0's spec, towers and embeddings.
  std::vector<std::unique_ptr<Model>> others;
  const Family* family = nullptr;
  at::ScalarType dtype = at::kFloat;
  int64_t parameters = 0;
  std::vector<std::string> unused_tensors;
  std::optional<QuantisedReport> quantised;  // absent if the checkpoint is not quantised
};

enum class ModelUse {
  // The fastest form for device and backend, copied into separate memory: later changes to the
  // files have no effect.
  kServing,
  // Plain tensors that support gradients; views of the mapped file if the dtype matches.
  kTraining,
};
// The ranks that share a model. Supported for ModelUse::kServing with the native kernels, and for
// heads that check_ranks() accepts. The device of each rank is device_of_rank().
struct ModelRanks {
  Communicator* communicator = nullptr;  // null: one rank. It must outlive the models.
  // CPUs of each rank, near which to place its weights; empty: anywhere.
  std::vector<CoreSet> cores;
};
// Loads a model folder. rounding: for ModelUse::kServing on CPUs. dtype: defaults to config.json's,
// then to the checkpoint's. kNotFound: no folder or no weights. kUnprocessable: unknown family,
// missing tensor or wrong shape, kHalf on a CPU, or an impossible `rounding`.
Result<LoadedModel> load_model(const ModelSource& source, std::optional<at::ScalarType> dtype,
                               at::Device device, ModelUse use = ModelUse::kServing,
                               Rounding rounding = {}, const ModelRanks& ranks = {});
// kInvalidArgument, with the numbers, if the heads cannot be divided among `ranks`.
Status check_ranks(const ModelSpec& spec, int ranks);
// Passes the configuration's settings of quantised linears to `weights`. Throws LoadError.
void set_quantisation(const ConfigReader& config, Weights& weights);
// The dtype in which load_model() loads a checkpoint whose weights are `stored`.
Result<at::ScalarType> resolve_dtype(std::optional<at::ScalarType> asked,
                                     const ConfigReader& config, at::ScalarType stored,
                                     at::Device device);
// Calls Family::spec and returns a LoadError as a Result.
Result<ModelSpec> read_model_spec(const Family& family, const ConfigReader& config);

}  // namespace valora::models
