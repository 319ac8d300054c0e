#include <algorithm>

#include "engine/inspect/inspect.h"
#include "engine/start/dtype.h"
#include "memory/block_arena.h"
#include "models/decoder/delta_net.h"
#include "models/registry.h"
#include "models/weights/checkpoint_weights.h"
#include "serving/prompts/frontend.h"

namespace valora {
namespace {

// Returns the value, or adds the error to the report's problems.
template <typename T>
std::optional<T> keep(Result<T> result, ModelReport& report) {
  if (result.ok()) return std::move(result).value();
  report.problems.push_back(result.error().message);
  return std::nullopt;
}

void read_names(const models::ConfigReader& config, ModelReport& report) {
  const Json& json = config.json();
  if (json.contains("architectures") && json["architectures"].is_array() &&
      !json["architectures"].empty() && json["architectures"][0].is_string())
    report.architecture = json["architectures"][0].get<std::string>();
  const Json& text =
      json.contains("text_config") && json["text_config"].is_object() ? json["text_config"] : json;
  if (auto heads = field_or<int64_t>(text, "num_attention_heads", 0); heads.ok())
    report.attention_heads = *heads;
}

void inspect_text(const models::Family& family, ModelReport& report) {
  EngineOptions options;
  options.model_path = report.path;
  options.mmproj = report.mmproj;
  if (const auto tokenizer = text::Tokenizer::load(report.path); tokenizer.ok())
    report.tokenizer_size = (*tokenizer)->vocab_size();
  // Frontend::open() checks what the engine needs: the tokenizer and its size, the generation
  // config, the chat format and the image processor.
  const auto frontend = keep(serving::Frontend::open(options, family, *report.spec), report);
  if (!frontend) return;
  const auto example =
      (*frontend)->chat_format().render({{"user", {{text::ChatPart::Kind::kText, "Hi"}}}}, true);
  if (example.ok()) report.chat_example = *example;
}

Result<ServedWeights> inspect_served(const ModelReport& report, at::ScalarType dtype,
                                     KvCacheDtype kv_cache_dtype) {
  // On the meta device, every tensor is looked up and its shape checked, but no values are read.
  VALORA_TRY(loaded,
             models::load_model({report.path, report.mmproj}, dtype, at::Device(at::kMeta)));
  const models::ModelSpec& spec = *report.spec;
  ServedWeights served;
  served.dtype = dtype_name(dtype);
  served.bytes = loaded.weights->held().all();
  served.unused = loaded.unused_tensors;
  served.quantised = loaded.quantised;
  EngineOptions defaults;
  defaults.kv_cache_dtype = kv_cache_dtype;
  const BlockSizes sizes =
      block_sizes(spec, defaults.max_lora_rank, dtype, kv_format_of(defaults), at::kCPU);
  served.kv_dtype = kv_dtype_name(defaults, dtype);
  served.kv_bytes_per_token = sizes.kv / memory::kBlockTokens;
  served.state_bytes = models::state_shape(spec.state, dtype).bytes();
  const int64_t left =
      std::max<int64_t>(0, available_host_memory() - static_cast<int64_t>(served.bytes));
  VALORA_TRY(plan, plan_memory(defaults, spec, sizes, left));
  served.plan = std::move(plan);
  return served;
}

void inspect_weights(const models::ConfigReader& config, ComputeDtype dtype,
                     KvCacheDtype kv_cache_dtype, ModelReport& report) {
  const auto weights = keep(models::Weights::open({report.path, report.mmproj}), report);
  if (!weights) return;
  if (report.spec) models::set_quantisation(config, **weights);
  const at::ScalarType stored = (*weights)->stored_dtype();
  const auto quantised = (*weights)->quantised();
  report.stored =
      StoredWeights{(*weights)->parameters(), (*weights)->bytes(),
                    quantised && quantised->format == models::kGgufFormat ? quantised->encoding
                                                                          : dtype_name(stored)};
  const auto type =
      keep(models::resolve_dtype(scalar_type(dtype), config, stored, at::kCPU), report);
  if (type && report.spec)
    report.served = keep(inspect_served(report, *type, kv_cache_dtype), report);
}

void add_warnings(ModelReport& report) {
  if (!report.served) return;
  for (const std::string& name : report.served->unused)
    report.warnings.push_back("tensor " + name + " is not used");
  for (const std::string& note : report.served->plan.notes) report.warnings.push_back(note);
}

}  // namespace

ModelReport inspect_model(const models::ModelSource& source, ComputeDtype dtype,
                          KvCacheDtype kv_cache_dtype) {
  ModelReport report;
  report.path = source.path;
  report.mmproj = source.mmproj;
  const auto config = keep(models::read_model_config(source), report);
  if (!config) return report;
  read_names(*config, report);
  const auto family = keep(models::find_family(*config), report);
  report.known_architecture = family.has_value();
  if (family) report.spec = keep(models::read_model_spec(**family, *config), report);
  try {
    if (report.spec) inspect_text(**family, report);
    inspect_weights(*config, dtype, kv_cache_dtype, report);
  } catch (const std::exception& e) {
    report.problems.push_back(source.path + ": " + e.what());
  }
  add_warnings(report);
  return report;
}

}  // namespace valora
