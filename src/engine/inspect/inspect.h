// Inspects a model or adapter folder for `valora inspect`: identifies it and checks whether CPUs
// can serve it. For a model, the names, shapes and dtypes of all tensors are checked as when
// loading, but no values are read. An adapter is read in full.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "api/cards.h"
#include "api/options.h"
#include "base/result.h"
#include "engine/memory/memory_plan.h"
#include "models/model.h"
#include "models/spec/gguf_model.h"

namespace valora {

enum class FolderKind { kModel, kAdapter };

// kAdapter if it has adapter_config.json, else kModel if it has config.json, else kNotFound.
Result<FolderKind> folder_kind(const std::string& dir);

struct StoredWeights {
  int64_t parameters = 0;
  size_t bytes = 0;
  std::string dtype;  // the most common one; for a GGUF file, its block types
};

struct ServedWeights {
  std::string dtype;
  size_t bytes = 0;  // in memory
  std::string kv_dtype;
  int64_t kv_bytes_per_token = 0;
  int64_t state_bytes = 0;          // a sequence's state in addition to its KV; 0: none
  MemoryPlan plan;                  // with default options and the currently free memory
  std::vector<std::string> unused;  // tensors the model does not use
  std::optional<models::QuantisedReport> quantised;  // absent if not quantised
};

struct ModelReport {
  std::string path;
  std::string mmproj;                 // models::ModelSource
  std::vector<std::string> problems;  // reasons why it cannot be served; empty if it can
  std::vector<std::string> warnings;
  // Filled in as far as possible even if there are problems.
  std::string architecture;
  bool known_architecture = false;
  std::optional<models::ModelSpec> spec;
  int64_t attention_heads = 0;
  std::optional<int32_t> tokenizer_size;  // number of tokens; absent if the tokenizer is unreadable
  std::optional<std::string> chat_example;  // the prompt built from the user message "Hi"
  std::optional<StoredWeights> stored;
  std::optional<ServedWeights> served;  // absent if a tensor is missing or invalid
};

ModelReport inspect_model(const models::ModelSource& source, ComputeDtype dtype,
                          KvCacheDtype kv_cache_dtype = KvCacheDtype::kAuto);

struct AdapterReport {
  std::string path;
  std::vector<std::string> problems;
  std::string base_model;                     // from adapter_config.json; may be empty
  std::string model_path;                     // the model it was checked against; empty: none
  std::string mmproj;                         // its models::ModelSource
  adapters::ModuleTable modules;              // indexed by the targets of `spec`
  std::optional<adapters::AdapterSpec> spec;  // absent if it cannot be served
  std::vector<ChangedPart> changes;           // in the order of serving::changed_parts()
  std::vector<std::string> idle_targets;      // "target_modules" without weights in the file
};

// Checks an adapter against a model's configuration, or on its own if the model's path is empty.
AdapterReport inspect_adapter(const std::string& dir, const models::ModelSource& model,
                              const adapters::AdapterLimits& limits);

// The size of an adapter's low-rank products beside that of the weights that they change:
// Frobenius norms over the linears of one part of the model that have a low-rank product.
struct PartNorms {
  std::string part;    // ChangedPart::name
  double change = 0;   // of scale · B A
  double weights = 0;  // of W as the model computes with it
};

// The report must have a model and be without problems. Reads the weights of all adapted linears,
// on the calling thread. Errors: the checkpoint is incomplete or cannot be read.
Result<std::vector<PartNorms>> norms_of(const AdapterReport& report);

}  // namespace valora
