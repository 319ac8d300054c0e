#include <algorithm>
#include <filesystem>
#include <map>

#include "adapters/tensors/tensor_names.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "engine/inspect/inspect.h"
#include "engine/inspect/open_checkpoint.h"
#include "models/registry.h"
#include "models/spec/model_path.h"
#include "models/weights/checkpoint_weights.h"
#include "serving/adapters/changed_parts.h"
#include "serving/prompts/frontend.h"

namespace valora {
namespace {

Result<adapters::ModuleTable> modules_of_model(const models::ModelSource& model) {
  VALORA_TRY(config, models::read_model_config(model));
  VALORA_TRY(family, models::find_family(config));
  VALORA_TRY(spec, models::read_model_spec(*family, config));
  return std::move(spec.modules);
}

adapters::ModuleKind vocabulary_kind(const std::string& module) {
  if (module.ends_with("embed_tokens") || module.ends_with(".wte"))
    return adapters::ModuleKind::kEmbedding;
  return module.ends_with("lm_head") ? adapters::ModuleKind::kHead : adapters::ModuleKind::kLinear;
}

// Checks the adapter's own tokenizer and chat template. Faults of the model are ignored here.
Status check_language(const adapters::AdapterSpec& spec, const models::ModelSource& source) {
  if (spec.parts.empty() || source.path.empty()) return {};
  const auto config = models::read_model_config(source);
  if (!config.ok()) return {};
  const auto family = models::find_family(*config);
  if (!family.ok()) return {};
  auto model = models::read_model_spec(**family, *config);
  if (!model.ok()) return {};
  EngineOptions options;
  options.model_path = source.path;
  options.mmproj = source.mmproj;
  const auto frontend = serving::Frontend::open(options, **family, std::move(model).value());
  if (!frontend.ok()) return {};
  const auto language = (*frontend)->own_language(spec);
  return language.ok() ? Status() : language.error();
}

// Derives the sizes of a module, or the width of heads, from the shape of a tensor.
void add_module(const adapters::TensorName& name, const std::vector<int64_t>& shape,
                std::map<std::string, adapters::Module>& modules, int64_t& hidden) {
  using adapters::TensorRole;
  const adapters::ModuleKind kind = vocabulary_kind(name.module);
  const auto set = [&](int64_t in, int64_t out) {
    adapters::Module& module = modules[name.module];
    if (in > 0) module.in = in;
    if (out > 0) module.out = out;
  };
  switch (name.role) {
    case TensorRole::kLoraA:
    case TensorRole::kEmbeddingA: return set(shape[1], 0);
    case TensorRole::kLoraB:
    case TensorRole::kEmbeddingB: return set(0, shape[0]);
    case TensorRole::kTokenRows: {
      constexpr int64_t kUnknown = int64_t{1} << 32;  // vocabulary size
      return kind == adapters::ModuleKind::kHead ? set(shape[1], kUnknown)
                                                 : set(kUnknown, shape[1]);
    }
    case TensorRole::kWeight:
      if (kind == adapters::ModuleKind::kEmbedding) return set(shape[0], shape[1]);
      if (kind == adapters::ModuleKind::kHead) return set(shape[1], shape[0]);
      hidden = shape[1];
      return;
    case TensorRole::kLoraBias:
    case TensorRole::kMagnitude:
    case TensorRole::kBias:
    case TensorRole::kOriginal: return;
  }
}

// A module table derived from the adapter's own tensors. With it, read_adapter() checks everything
// except that a model has these linears. Errors in the file are left for read_adapter() to report.
adapters::ModuleTable modules_of_adapter(const std::string& dir) {
  std::map<std::string, adapters::Module> modules;
  int64_t hidden = 0;
  const auto file = SafeTensors::open(dir + "/adapter_model.safetensors");
  if (!file.ok()) return {};
  for (const auto& [tensor, view] : (*file)->tensors()) {
    const auto name = adapters::parse_tensor_name(tensor);
    if (!name.ok() || view.shape.size() != 2) continue;
    add_module(*name, view.shape, modules, hidden);
  }
  std::vector<adapters::Module> list;
  for (const auto& [name, module] : modules) {
    list.push_back(module);
    list.back().name = name;
    list.back().kind = vocabulary_kind(name);
  }
  return adapters::ModuleTable(std::move(list), {}, hidden);
}

std::string base_model_of(const std::string& dir) {
  const auto config = read_json_file(dir + "/adapter_config.json");
  if (!config.ok() || !config->is_object()) return {};
  const auto name = field_or<std::string>(*config, "base_model_name_or_path", "");
  return name.ok() ? *name : std::string();
}

// True if PEFT takes the module for the target: an entry of a list is a name or its end.
bool is_target(const std::string& module, const std::string& target) {
  return module == target || module.ends_with("." + target);
}

// "target_modules" of adapter_config.json if it is a list of names: a pattern has no entries.
std::vector<std::string> listed_targets(const std::string& dir) {
  const auto config = read_json_file(dir + "/adapter_config.json");
  if (!config.ok() || !config->is_object() || !config->contains("target_modules")) return {};
  std::vector<std::string> targets;
  for (const Json& target : (*config)["target_modules"])
    if (target.is_string()) targets.push_back(target.get<std::string>());
  return (*config)["target_modules"].is_array() ? targets : std::vector<std::string>();
}

// The listed targets that name no module with weights in the file.
std::vector<std::string> idle_targets(const std::string& dir, const adapters::AdapterSpec& spec,
                                      const adapters::ModuleTable& modules) {
  if (spec.targets.empty()) return {};
  std::vector<std::string> idle;
  for (const std::string& target : listed_targets(dir)) {
    const auto matches = [&](const adapters::LoraTarget& adapted) {
      return std::ranges::any_of(modules.names(adapted.module),
                                 [&](const std::string& name) { return is_target(name, target); });
    };
    if (std::ranges::none_of(spec.targets, matches)) idle.push_back(target);
  }
  return idle;
}

}  // namespace

Result<FolderKind> folder_kind(const std::string& dir) {
  std::error_code ignored;
  if (std::filesystem::is_directory(dir, ignored) && file_exists(dir + "/adapter_config.json"))
    return FolderKind::kAdapter;
  VALORA_CHECK(models::check_model_folder(dir));
  return FolderKind::kModel;
}

AdapterReport inspect_adapter(const std::string& dir, const models::ModelSource& model,
                              const adapters::AdapterLimits& limits) {
  AdapterReport report;
  report.path = dir;
  report.model_path = model.path;
  report.mmproj = model.mmproj;
  report.base_model = base_model_of(dir);
  Result<adapters::ModuleTable> modules =
      model.path.empty() ? modules_of_adapter(dir) : modules_of_model(model);
  if (!modules.ok()) {
    report.problems.push_back(modules.error().message);
    return report;
  }
  report.modules = std::move(modules).value();
  const auto checkpoint = model.path.empty() ? std::nullopt : open_checkpoint(model);
  auto spec = checkpoint ? adapters::read_adapter(dir, report.modules, limits,
                                                  models::CheckpointWeights(*checkpoint))
                         : adapters::read_adapter(dir, report.modules, limits);
  if (spec.ok())
    if (const Status written = check_language(*spec, model); !written.ok())
      report.problems.push_back(written.error().message);
  if (!spec.ok()) {
    report.problems.push_back(spec.error().message);
    return report;
  }
  report.spec = std::move(spec).value();
  report.changes = serving::changed_parts(*report.spec, report.modules);
  report.idle_targets = idle_targets(dir, *report.spec, report.modules);
  return report;
}

}  // namespace valora
