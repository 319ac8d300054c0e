// What a folder is and whether it can be served on CPUs: everything that `valora inspect` says. Of
// a model the names, shapes and dtypes of all tensors are checked as loading does, but no value is
// read; an adapter is read in full, as it is when it is loaded.
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

// By the files in it: adapter_config.json makes an adapter, config.json a model. kNotFound for
// anything else.
Result<FolderKind> folder_kind(const std::string& dir);

struct StoredWeights {
  int64_t parameters = 0;
  size_t bytes = 0;
  std::string dtype;  // of most of the bytes
};

struct ServedWeights {
  std::string dtype;
  size_t bytes = 0;  // in memory
  int64_t kv_bytes_per_token = 0;
  MemoryPlan plan;                  // with the default options, by the memory that is free now
  std::vector<std::string> unused;  // tensors that nothing asks for
};

struct ModelReport {
  std::string path;
  std::vector<std::string> problems;  // why it cannot be served; empty: it can
  std::vector<std::string> warnings;
  // What could be found out, problems or not.
  std::string architecture;
  bool known_architecture = false;
  std::optional<models::ModelSpec> spec;
  int64_t attention_heads = 0;
  std::optional<int32_t> tokenizer_size;    // tokens; none: it cannot be used
  std::optional<std::string> chat_example;  // "Hi" from a user, as the model would be asked
  std::optional<StoredWeights> stored;
  std::optional<ServedWeights> served;  // none unless every tensor is there and fits
};

ModelReport inspect_model(const std::string& dir, ComputeDtype dtype);

struct AdapterReport {
  std::string path;
  std::vector<std::string> problems;
  std::string base_model;                     // as adapter_config.json names it; may be empty
  std::string model_path;                     // the model it was checked against; empty: none
  adapters::ModuleTable modules;              // that spec's targets point into
  std::optional<adapters::AdapterSpec> spec;  // none where it cannot be served
};

// Against a model's configuration, or (model_dir empty) as far as the folder alone tells.
AdapterReport inspect_adapter(const std::string& dir, const std::string& model_dir,
                              const adapters::AdapterLimits& limits);

}  // namespace valora
