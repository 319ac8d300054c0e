// Inspects a model or adapter folder for `valora inspect`: what it is, and whether it can be served
// on CPUs. For a model, the names, shapes and dtypes of all tensors are checked as in loading, but
// no values are read. An adapter is read in full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/options.h"
#include "base/result.h"
#include "engine/memory_plan.h"
#include "models/model.h"

namespace valora {

enum class FolderKind { kModel, kAdapter };

// kAdapter if it has adapter_config.json, else kModel if it has config.json, else kNotFound.
Result<FolderKind> folder_kind(const std::string& dir);

struct StoredWeights {
  int64_t parameters = 0;
  size_t bytes = 0;
  std::string dtype;  // of most bytes; of a GGUF file the types of its blocks
};

struct ServedWeights {
  std::string dtype;
  size_t bytes = 0;  // in memory
  std::string kv_dtype;
  int64_t kv_bytes_per_token = 0;
  int64_t state_bytes = 0;          // of a sequence's state besides its KV; 0: it has none
  MemoryPlan plan;                  // with default options and the currently free memory
  std::vector<std::string> unused;  // tensors that the model does not use
  std::optional<models::QuantisedReport> quantised;  // absent if the folder is not
};

struct ModelReport {
  std::string path;
  std::vector<std::string> problems;  // why it cannot be served; empty if it can
  std::vector<std::string> warnings;
  // Filled in as far as possible, even if there are problems.
  std::string architecture;
  bool known_architecture = false;
  std::optional<models::ModelSpec> spec;
  int64_t attention_heads = 0;
  std::optional<int32_t> tokenizer_size;    // number of tokens; absent if it cannot be read
  std::optional<std::string> chat_example;  // the prompt for the user message "Hi"
  std::optional<StoredWeights> stored;
  std::optional<ServedWeights> served;  // absent if a tensor is missing or wrong
};

ModelReport inspect_model(const std::string& dir, ComputeDtype dtype,
                          KvCacheDtype kv_cache_dtype = KvCacheDtype::kAuto);

struct AdapterReport {
  std::string path;
  std::vector<std::string> problems;
  std::string base_model;                     // from adapter_config.json; may be empty
  std::string model_path;                     // the model that it was checked against; empty: none
  adapters::ModuleTable modules;              // the targets of `spec` index it
  std::optional<adapters::AdapterSpec> spec;  // absent if it cannot be served
};

// Checks an adapter against the configuration of a model, or without one if model_dir is empty.
AdapterReport inspect_adapter(const std::string& dir, const std::string& model_dir,
                              const adapters::AdapterLimits& limits);

}  // namespace valora
