#include "models/registry.h"

#include <fmt/format.h>

#include "models/families/families.h"
#include "models/quantised/config.h"
#include "models/spec/load_error.h"
#include "ops/device/devices.h"
#include "ops/device/dispatch.h"

namespace valora::models {
namespace {

std::string first_architecture(const Json& config) {
  const auto it = config.find("architectures");
  if (it == config.end() || !it->is_array() || it->empty() || !it->front().is_string()) return {};
  return it->front().get<std::string>();
}

// The dtype named in config.json; nullopt if it names none.
Result<std::optional<at::ScalarType>> configured_dtype(const ConfigReader& config) {
  std::string name;
  try {
    const ConfigReader text = config.nested_or_self("text_config");
    name = config.text(
        "dtype", config.text("torch_dtype", text.text("dtype", text.text("torch_dtype", ""))));
  } catch (const LoadError& e) {
    return e.error();
  }
  if (name.empty()) return std::optional<at::ScalarType>();
  if (name == "float32" || name == "float") return std::optional(at::kFloat);
  if (name == "bfloat16") return std::optional(at::kBFloat16);
  if (name == "float16" || name == "half") return std::optional(at::kHalf);
  return invalid(config.file() + ": dtype \"" + name +
                     "\" is unknown; use --dtype float32, bfloat16 or float16",
                 "dtype");
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      llama_family(),       pixtral_family(),
      llava_family(),       mistral_family(),
      mistral3_family(),    qwen2_family(),
      qwen2_vl_family(),    qwen2_5_vl_family(),
      qwen3_family(),       qwen3_vl_family(),
      idefics3_family(),    smolvlm_family(),
      internvl_family(),    internvl_chat_family(),
      llava_next_family(),  llava_onevision_family(),
      gemma3_family(),      gemma3_text_family(),
      qwen1_vl_family(),    qwen1_family(),
      qwen3_5_family(),     qwen3_5_text_family(),
      qwen3_moe_family(),   qwen3_vl_moe_family(),
      qwen3_5_moe_family(), qwen3_5_moe_text_family(),
  };
  return all;
}

Result<const Family*> find_family(const ConfigReader& config) {
  // transformers 4.57 writes a composite model's architecture into its text_config only.
  std::string name = first_architecture(config.json());
  if (name.empty()) {
    name = first_architecture(config.nested_or_self("text_config").json());
    if (!name.ends_with("ForConditionalGeneration")) name.clear();  // the decoder's own name
  }
  const auto type = field_or<std::string>(config.json(), "model_type", "");
  const bool by_type = name.empty() && type.ok() && !type->empty();
  if (name.empty() && !by_type)
    return unprocessable(config.file() + ": \"architectures\" is missing", config.file());
  std::vector<std::string> known;
  for (const Family& family : families()) {
    const bool named = by_type ? family.model_type == *type : family.architecture == name;
    if (named && (!family.takes || family.takes(config))) return &family;
    if (!family.takes) known.push_back(by_type ? family.model_type : family.architecture);
  }
  if (by_type)
    return unprocessable(
        fmt::format("{}: \"architectures\" is missing, and model_type {} is not supported; "
                    "supported types: {}",
                    config.file(), *type, fmt::join(known, ", ")),
        config.file());
  return unprocessable(
      fmt::format("{}: architecture {} is not supported; supported architectures: {}",
                  config.file(), name, fmt::join(known, ", ")),
      config.file());
}

Result<at::ScalarType> resolve_dtype(std::optional<at::ScalarType> asked,
                                     const ConfigReader& config, at::ScalarType stored,
                                     at::Device device) {
  if (asked == at::kHalf && device.is_cpu())
    return unprocessable("dtype float16 is served on GPUs only; use bfloat16 or float32", "dtype");
  if (asked) return *asked;
  VALORA_TRY(configured, configured_dtype(config));
  const bool reduced = stored == at::kBFloat16 || stored == at::kHalf;
  const at::ScalarType type = configured.value_or(reduced ? stored : at::kFloat);
  // fp16 has no fast CPU path.
  return type == at::kHalf && device.is_cpu() ? at::kBFloat16 : type;
}

Result<ModelSpec> read_model_spec(const Family& family, const ConfigReader& config) {
  try {
    return family.spec(config);
  } catch (const LoadError& e) {
    return e.error();
  }
}

Status check_ranks(const ModelSpec& spec, int ranks) {
  const auto refused = [&](const std::string& what) {
    return invalid(fmt::format("--tensor-parallel-size {}: {}", ranks, what),
                   "tensor_parallel_size");
  };
  if (spec.state.key_heads % ranks != 0)
    return refused(
        fmt::format("the {} heads of keys of {}'s gated delta rules do not divide evenly",
                    spec.state.key_heads, spec.architecture));
  if (spec.heads % ranks != 0)
    return refused(fmt::format("the {} attention heads of {} do not divide evenly", spec.heads,
                               spec.architecture));
  if (spec.whole_kv_heads && spec.kv_heads % ranks != 0)
    return refused(
        fmt::format("the {} heads of keys and values of {}, which are of one linear "
                    "with their queries, do not divide evenly",
                    spec.kv_heads, spec.architecture));
  // With more ranks than KV heads, several ranks share one.
  if (spec.kv_heads % ranks != 0 && ranks % spec.kv_heads != 0)
    return refused(
        fmt::format("the {} heads of keys and values of {} neither divide evenly nor "
                    "divide the number of ranks",
                    spec.kv_heads, spec.architecture));
  for (const adapters::Module& module : spec.modules.modules())
    if (module.partition.split == adapters::Split::kInputs && module.in < ranks)
      return refused(fmt::format("the {} inputs of {}'s {} are fewer than the ranks", module.in,
                                 spec.architecture, module.name));
  return {};
}

void set_quantisation(const ConfigReader& config, Weights& weights) {
  auto quantised = read_quantised_config(config);
  if (quantised)
    weights.set_quantisation(std::make_shared<const QuantisedConfig>(std::move(*quantised)));
}

namespace {

// Called before and after the weights are loaded.
Status check_inputs(at::ScalarType type, at::Device device, ModelUse use) {
  if (use == ModelUse::kServing && ops::target_of(type, device) == ops::Target::kCpu) return {};
  return unprocessable(
      "--activations int8: only the native kernels of CPUs round inputs, for serving; leave it out",
      "activations");
}
Status check_inputs(const std::string& dir, const Weights& weights) {
  if (weights.keeps_integers()) return {};
  return unprocessable(dir +
                           ": --activations int8 rounds the inputs of linears in integers, and "
                           "there are none; --quantization int8 or int4 makes them",
                       "activations");
}

}  // namespace

Result<LoadedModel> load_model(const ModelSource& source, std::optional<at::ScalarType> dtype,
                               at::Device device, ModelUse use, Rounding rounding,
                               const ModelRanks& ranks) {
  const bool quantises = rounding.weights.has_value();
  const std::string& dir = source.path;
  VALORA_TRY(config, read_model_config(source));
  VALORA_TRY(family, find_family(config));
  VALORA_TRY(weights, Weights::open(source));
  try {
    VALORA_TRY(type, resolve_dtype(dtype, config, weights->stored_dtype(), device));
    weights->set_target(type, device);
    if (rounding.inputs) VALORA_CHECK(check_inputs(type, device, use));
    weights->set_plain(use == ModelUse::kTraining);
    weights->set_rounding(rounding);
    weights->set_aliases(family->spec(config).aliases);
    set_quantisation(config, *weights);
    if (quantises && weights->quantised())
      return unprocessable(dir + ": the weights are quantised already (" +
                               weights->quantised()->format + "); leave out --quantization",
                           "quantization");
    const int count = ranks.communicator ? ranks.communicator->ranks() : 1;
    LoadedModel loaded;
    for (int rank = 0; rank < count; ++rank) {
      const at::Device own = ops::device_of_rank(device, rank);
      weights->set_target(type, own);
      weights->set_shard({rank, count, ranks.communicator});
      std::unique_ptr<Model> model;
      run_bound(ranks.cores.empty() ? CoreSet() : ranks.cores[static_cast<size_t>(rank)], [&] {
        const ops::OnDevice current(own);
        model = family->build(config, *weights, own);
      });
      if (rank == 0)
        loaded.model = std::move(model);
      else
        loaded.others.push_back(std::move(model));
    }
    weights->set_target(type, device);
    if (rounding.inputs) VALORA_CHECK(check_inputs(dir, *weights));
    loaded.family = family;
    loaded.dtype = type;
    loaded.parameters = weights->parameters();
    loaded.unused_tensors = weights->unused();
    loaded.quantised = weights->quantised();
    if (use == ModelUse::kServing) VALORA_CHECK(weights->unmap());
    loaded.weights = std::move(weights);
    return loaded;
  } catch (const LoadError& e) {
    return e.error();
  } catch (const c10::Error& e) {
    return unprocessable(dir + ": " + e.what_without_backtrace(), dir);
  }
}

}  // namespace valora::models
