#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/tensors/gguf_files.h"
#include "hub/cache/hub_cache.h"
#include "hub/client/listing.h"

namespace valora::hub {
namespace {

constexpr size_t kMostIndexBytes = size_t{32} << 20;

bool has(const std::string& folder, const std::string& file) {
  return file_exists(folder + "/" + file);
}

bool has_any(const std::string& folder, std::initializer_list<const char*> files) {
  return std::ranges::any_of(files, [&](const char* file) { return has(folder, file); });
}

// The files in a folder that end in `end`; links that lead nowhere are none.
std::vector<std::string> files_with_ending(const std::string& folder, const char* end) {
  std::error_code ignored;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == end && file_exists(entry.path().string()))
      files.push_back(entry.path().string());
  return files;
}

bool has_all_parts(const std::string& file) {
  const auto part = gguf_part_name(file);
  for (int64_t i = 1; part && i <= part->count; ++i)
    if (!file_exists(part->path(i))) return false;
  return true;
}

bool has_weights(const std::string& folder) {
  if (has(folder, kModelWeights)) return true;
  const std::string index = folder + "/" + kWeightsIndex;
  const auto text = read_file(index, kMostIndexBytes);
  if (!text.ok()) return false;
  const auto shards = read_shards(*text, index);
  return shards.ok() &&
         std::ranges::all_of(*shards, [&](const std::string& shard) { return has(folder, shard); });
}

// The models in GGUF files, with all of their parts.
std::vector<std::string> gguf_models(const std::string& folder) {
  std::vector<std::string> models = files_with_ending(folder, ".gguf");
  std::erase_if(models, [](const std::string& file) {
    return !is_gguf_model_name(file) || !has_all_parts(file);
  });
  return models;
}

bool is_one_gguf(const std::string& folder) {
  return gguf_models(folder).size() == 1 && !has_any(folder, {kModelWeights, kWeightsIndex});
}

// A model with a tower says in config.json that it has one, and needs the settings of pictures.
bool has_processor(const std::string& folder) {
  const auto config = read_json_file(folder + "/" + kModelConfig);
  if (!config.ok() || !config->is_object() || !config->contains("vision_config")) return true;
  return has_any(folder, {"preprocessor_config.json", "processor_config.json"});
}

bool has_tokenizer(const std::string& folder) {
  return has_any(folder,
                 {"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tekken.json"}) ||
         !files_with_ending(folder, ".tiktoken").empty();
}

}  // namespace

bool has_tensors(const std::string& folder, Kind kind, const HubName& name) {
  if (!name.file.empty()) return has(folder, name.file) && has_all_parts(folder + "/" + name.file);
  const bool adapter = has(folder, kAdapterConfig);
  const bool model = has(folder, kModelConfig);
  if (kind == Kind::kAdapter || (kind == Kind::kAny && adapter && !model))
    return adapter && std::ranges::any_of(kAdapterWeights, [&](const char* weights) {
             return has(folder, weights);
           });
  return is_one_gguf(folder) || (model && has_weights(folder));
}

bool is_complete(const std::string& folder, Kind kind, const HubName& name) {
  if (!has_tensors(folder, kind, name)) return false;
  const bool model = has(folder, kModelConfig) && has_weights(folder) && name.file.empty();
  return kind == Kind::kAdapter || !model || (has_tokenizer(folder) && has_processor(folder));
}

std::string path_in(const std::string& folder, const HubName& name) {
  if (!name.file.empty()) return folder + "/" + name.file;
  return is_one_gguf(folder) ? gguf_models(folder).front() : folder;
}

std::optional<std::string> find_modelscope(const std::vector<std::string>& folders, Kind kind,
                                           const HubName& name) {
  if (!name.revision.empty()) return {};  // the folder does not say of which revision it is
  std::string plain = name.name;          // ModelScope writes "___" for a dot
  for (size_t dot; (dot = plain.find('.')) != std::string::npos;) plain.replace(dot, 1, "___");
  for (const std::string& root : folders)
    for (const std::string& folder :
         {root + "/" + name.owner + "/" + name.name, root + "/" + name.owner + "/" + plain})
      if (is_complete(folder, kind, name)) return folder;
  return {};
}

}  // namespace valora::hub
