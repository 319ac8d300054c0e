#include <algorithm>
#include <filesystem>
#include <set>

#include "adapters/adapter_spec.h"
#include "adapters/folder/adapter_contents.h"
#include "adapters/folder/adapter_digest.h"
#include "adapters/folder/lora_config.h"
#include "adapters/folder/mlx_adapter.h"
#include "adapters/folder/read_at_rest.h"
#include "adapters/folder/sidecar.h"
#include "adapters/targets/lora_targets.h"
#include "adapters/task_heads.h"
#include "adapters/tensors/base_copies.h"
#include "adapters/tensors/tensor_names.h"
#include "adapters/tensors/value_warnings.h"
#include "adapters/tensors/whole_values.h"
#include "base/files/file.h"
#include "base/files/folder_snapshot.h"
#include "base/files/input_folder.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kTensors = "adapter_model.safetensors";
constexpr const char* kConvert =
    "python3 -c \"import torch, safetensors.torch as s; "
    "s.save_file({k: v.clone().contiguous() for k, v in torch.load('adapter_model.bin', "
    "map_location='cpu', weights_only=True).items()}, 'adapter_model.safetensors')\"";

// The last (by name) subfolder that contains an adapter: trainers create checkpoint-N, and PEFT
// saves named adapters into subfolders. Empty: none.
std::string adapter_below(const std::string& path) {
  constexpr int kMaxEntries = 10'000;
  std::error_code error;
  std::string last;
  int seen = 0;
  for (std::filesystem::directory_iterator entry(path, error), end;
       !error && entry != end && ++seen < kMaxEntries; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::pair(name.size(), name) > std::pair(last.size(), last) &&
        file_exists((entry->path() / kConfig).string()))
      last = name;
  }
  return last;
}

Result<InputFolder> open_folder(const FolderPath& where) {
  auto folder = InputFolder::open(where);
  if (!folder.ok())
    return not_found("adapter folder " + where.path + " does not exist", where.path);
  if (folder->has(kConfig)) return folder;
  const std::string below = where.root.empty() ? adapter_below(where.path) : "";
  return not_found(where.path + " is not a PEFT adapter: it has no " + kConfig +
                       (below.empty() ? "" : ", but its folder " + shortened(below) + " has one"),
                   where.path);
}

// Called after the configuration is read, so that its errors are reported first.
Status check_tensor_file(const InputFolder& folder) {
  const std::string& dir = folder.path();
  if (folder.has(kTensors)) return {};
  if (folder.has("adapter_model.bin"))
    return unprocessable(
        dir +
            " has its tensors in adapter_model.bin (a pickle), which is not read, because reading "
            "it runs code that it holds. If you trust it, convert it in the folder: " +
            kConvert,
        dir);
  if (folder.has("adapter_model.safetensors.index.json"))
    return unprocessable(
        dir +
            " has its tensors in several files (adapter_model.safetensors.index.json), which PEFT "
            "does not read either: join them as adapter_model.safetensors",
        dir);
  if (folder.has("pytorch_model_fsdp_0"))
    return unprocessable(dir +
                             " has its tensors in the shards of pytorch_model_fsdp_0: join them "
                             "with accelerate merge-weights as adapter_model.safetensors",
                         dir);
  return not_found(dir + " has no adapter_model.safetensors", dir);
}

// Warns of LLaMA-Factory's reward models, whose score is not the language model's answer.
void warn_of_value_head(const InputFolder& folder, AdapterSpec& spec) {
  for (const char* name : {"value_head.safetensors", "value_head.bin"})
    if (folder.has(name))
      spec.warnings.push_back(std::string(name) +
                              " is not read: scores of a reward model need its "
                              "tensors in adapter_model.safetensors, as those of the head v_head");
}

// True if the file's embedding also serves as the output layer (ensure_weight_tying).
bool is_tied_head(const LoraConfig& config, const Module& module, const ModuleTable& modules) {
  const int embedding = modules.first_of(ModuleKind::kEmbedding);
  return config.ensure_weight_tying && module.kind == ModuleKind::kHead && embedding >= 0;
}

// The modules of which the file has copies.
std::set<int> copied_modules(const AdapterContents& contents, const ModuleTable& modules) {
  std::set<int> copied;
  for (const auto& [tensor, name] : contents.base_copies)
    if (const auto module = modules.find(name.module)) copied.insert(*module);
  return copied;
}

// A module of the model listed in modules_to_save was trained in full. Without its tensors the
// adapter would answer differently from the trained one, so it is refused like one whose tensors
// cannot be served.
Status check_saved_modules(const LoraConfig& config, const AdapterContents& contents,
                           const ModuleTable& modules) {
  const std::set<int> copied = copied_modules(contents, modules);
  for (const std::string& saved : config.modules_to_save) {
    const std::string suffix = "." + saved;
    for (size_t i = 0; i < modules.modules().size(); ++i) {
      const std::string& name = modules.modules()[i].name;
      if ((name == saved || name.ends_with(suffix)) && !copied.contains(static_cast<int>(i)) &&
          !(is_tied_head(config, modules.modules()[i], modules) &&
            copied.contains(modules.first_of(ModuleKind::kEmbedding))))
        return unprocessable("modules_to_save names " + shortened(saved) + ", that is " + name +
                             " (its whole weight), for which the file has no tensors");
    }
  }
  return {};
}

// Warns if modules_to_save names a head but the file has none.
void warn_of_missing_heads(const LoraConfig& config, const AdapterContents& contents,
                           AdapterSpec& spec) {
  if (config.modules_to_save.empty() || !spec.heads.empty() || !contents.base_copies.empty())
    return;
  spec.warnings.push_back("modules_to_save names " + config.modules_to_save[0] +
                          ", but the file has no tensors for any of its entries");
}

void take_sidecar(Sidecar sidecar, AdapterSpec& spec) {
  spec.task = std::move(sidecar.task);
  spec.description = std::move(sidecar.description);
  spec.question = std::move(sidecar.question);
  spec.warnings.insert(spec.warnings.end(), sidecar.warnings.begin(), sidecar.warnings.end());
}

// PEFT's activated LoRA adapts only linears that see nothing but text tokens.
Status check_invocation(const AdapterSpec& spec, const ModuleTable& modules) {
  if (spec.invocation.empty()) return {};
  const auto refused = [](const std::string& what) {
    return unprocessable("alora_invocation_tokens with " + what + " cannot be served",
                         "alora_invocation_tokens");
  };
  for (const LoraTarget& target : spec.targets) {
    const Module& module = modules.modules()[target.module];
    if (module.visual || module.kind == ModuleKind::kEmbedding)
      return refused("an adapter on " + module.name);
  }
  return spec.parts.empty() ? Status() : refused("embeddings or output layers of its own");
}

// True if a tensor's values are read into memory. Heads, biases, token rows and low-rank products
// on embeddings are small and always read: their digests are part of an adapter's identity even if
// only headers are read.
bool is_read(const std::string& tensor, const LoraConfig& config, const ModuleTable& modules,
             const BaseCopies& copies, bool values) {
  const auto name = parse_tensor_name(tensor);
  if (!name.ok()) return values;
  if (name->role == TensorRole::kOriginal) return false;
  if (copies.are(tensor, modules))
    return config.trained_biases && name->role == TensorRole::kBias && !copies.pass_over;
  return values || (name->role != TensorRole::kLoraA && name->role != TensorRole::kLoraB);
}

// What is read of an adapter, and how.
struct Reading {
  bool values = true;   // include those of the targets
  bool compare = true;  // read values twice: nothing else tells whether they were changed meanwhile
};

struct AdapterSources {
  LoraConfig config;
  std::shared_ptr<const SafeTensors> file;
};

// Changes what is read if the configuration requires it.
Result<AdapterSources> open_peft(const InputFolder& folder, const ModuleTable& modules,
                                 const AdapterLimits& limits, const BaseCopies& copies,
                                 Reading& reading) {
  VALORA_TRY(config, read_lora_config(folder));
  // Norms need the values.
  reading.values = reading.values || (config.dora && !copies.pass_over);
  VALORA_CHECK(check_tensor_file(folder));
  VALORA_TRY(tensors, folder.file(kTensors, limits.max_file_bytes));
  VALORA_TRY(file, SafeTensors::read(tensors, [&](const std::string& tensor) {
               return is_read(tensor, config, modules, copies, reading.values);
             }));
  if (reading.compare) VALORA_CHECK(compare_again(tensors, *file));
  return AdapterSources{std::move(config), std::move(file)};
}

// Reads all values, because they are transposed.
Result<AdapterSources> open_mlx(const InputFolder& folder, const AdapterLimits& limits,
                                Reading& reading) {
  reading.values = true;
  if (!folder.has(kMlxTensors))
    return not_found(folder.path() + " has no " + kMlxTensors + ", as adapters of MLX have",
                     folder.path());
  VALORA_TRY(tensors, folder.file(kMlxTensors, limits.max_file_bytes));
  VALORA_TRY(file, SafeTensors::read(tensors, [](const std::string&) { return true; }));
  if (reading.compare) VALORA_CHECK(compare_again(tensors, *file));
  VALORA_TRY(made, read_mlx_adapter(folder, *file));
  return AdapterSources{std::move(made.config), std::move(made.tensors)};
}

Result<AdapterSpec> read_open_folder(const InputFolder& folder, const FolderPath& where,
                                     const ModuleTable& modules, const AdapterLimits& limits,
                                     const BaseCopies& copies, Reading reading) {
  VALORA_TRY(sources, is_mlx_adapter(folder) ? open_mlx(folder, limits, reading)
                                             : open_peft(folder, modules, limits, copies, reading));
  auto& [config, file] = sources;
  const bool values = reading.values;
  VALORA_TRY(sidecar, read_sidecar(folder));
  VALORA_TRY(contents, sort_tensors(*file, config, modules, copies));
  VALORA_CHECK(check_saved_modules(config, contents, modules));

  AdapterSpec spec;
  spec.path = where.path;
  spec.root = where.root;
  spec.warnings = std::move(config.warnings);
  VALORA_TRY(targets, resolve_targets(config.rules, contents, modules, limits, spec.warnings));
  const auto resized = [&](const LoraTarget& target) {
    return is_of_resized_head(target, modules);
  };
  if (!values && !copies.pass_over && std::ranges::any_of(targets, resized))
    return read_open_folder(folder, where, modules, limits, copies,
                            {.compare = reading.compare});  // the digest covers them
  VALORA_TRY(heads, resolve_heads(contents, sidecar, modules.hidden_size()));
  // Last, because it reads the most data.
  VALORA_TRY(changed, copies.changed(*file, contents, modules, config));
  if (targets.empty() && heads.empty() && changed.empty() && contents.token_rows.empty() &&
      !copies.pass_over)
    return unprocessable(where.path + " is empty: it has neither LoRA weights nor heads",
                         where.path);
  const std::string idle = idle_products(targets);
  spec.targets = std::move(targets);
  spec.invocation = std::move(config.invocation);
  spec.heads = std::move(heads);
  for (const LoraTarget& target : spec.targets)
    spec.max_rank = std::max(spec.max_rank, target.rank);
  for (const auto& [name, view] : file->tensors())
    if (!contents.base_copies.contains(name) && !contents.originals.contains(name))
      spec.bytes += byte_size(view);
  if (copies.pass_over)
    (void)take_vocabulary_targets(spec.targets, modules);
  else
    VALORA_CHECK(
        resolve_whole_values(*file, contents, config, modules, changed, copies.base, spec));
  if (!copies.pass_over) VALORA_CHECK(check_invocation(spec, modules));
  warn_of_missing_heads(config, contents, spec);
  warn_of_value_head(folder, spec);
  take_sidecar(std::move(sidecar), spec);
  if (copies.pass_over) spec.warnings.clear();  // given when it was registered
  warn_of_values(*file, idle, spec);
  spec.panels_headers_digest = digest_of_headers(spec, modules, file->identity());
  spec.headers_digest = digest_with_whole_values(spec.panels_headers_digest, spec, modules);
  spec.file = std::move(file);
  return spec;
}

// Reads everything but the digests.
Result<AdapterSpec> read_spec(const FolderPath& where, const ModuleTable& modules,
                              const AdapterLimits& limits, const BaseCopies& copies,
                              Reading reading) {
  VALORA_TRY(folder, open_folder(where));
  const FolderSnapshot before =
      FolderSnapshot::take(folder, adapter_files(), /*with_contents=*/true);
  Result<AdapterSpec> spec = read_open_folder(folder, where, modules, limits, copies, reading);
  VALORA_CHECK(before.check(folder));  // first: a change explains any other error
  return spec;
}

Result<AdapterSpec> read_values(const FolderPath& where, const ModuleTable& modules,
                                const AdapterLimits& limits, const BaseCopies& copies,
                                bool compare = true) {
  VALORA_TRY(spec, read_spec(where, modules, limits, copies, {.compare = compare}));
  spec.panels_digest = digest_of_adapter(spec, modules);
  spec.digest = digest_with_whole_values(spec.panels_digest, spec, modules);
  return spec;
}

Result<AdapterSpec> read_headers(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits, const BaseCopies& copies) {
  VALORA_TRY(spec, read_spec(where, modules, limits, copies, {.values = false}));
  spec.panels_digest = spec.panels_headers_digest;
  spec.digest = spec.headers_digest;
  return spec;
}

}  // namespace

Result<AdapterSpec> read_adapter(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits) {
  return read_values(where, modules, limits, {});
}

Result<AdapterSpec> read_adapter(const FolderPath& where, const ModuleTable& modules,
                                 const AdapterLimits& limits, const BaseWeights& base) {
  return read_values(where, modules, limits, {.base = &base});
}

Result<AdapterSpec> read_adapter_again(const FolderPath& where, const ModuleTable& modules,
                                       const AdapterLimits& limits, bool known_digest) {
  return read_values(where, modules, limits, {.pass_over = true}, /*compare=*/!known_digest);
}

Result<AdapterSpec> read_adapter_headers(const FolderPath& where, const ModuleTable& modules,
                                         const AdapterLimits& limits) {
  return read_headers(where, modules, limits, {});
}

Result<AdapterSpec> read_adapter_headers(const FolderPath& where, const ModuleTable& modules,
                                         const AdapterLimits& limits, const BaseWeights& base) {
  return read_headers(where, modules, limits, {.base = &base});
}

}  // namespace valora::adapters
