#include "hub/choose_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/tensors/gguf_files.h"

namespace valora::hub {
namespace {

// Larger than the tokenizers with the most tokens; more is data, not settings.
constexpr uint64_t kMostSettingsBytes = uint64_t{256} << 20;

bool is_settings(const RemoteFile& file) {
  constexpr std::array<std::string_view, 5> kEnds = {".json", ".jinja", ".txt", ".model",
                                                     ".tiktoken"};
  constexpr std::array<std::string_view, 4> kOthers = {"trainer_state.json", "all_results.json",
                                                       "train_results.json", "eval_results.json"};
  const std::string_view name = file.name;
  return std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); }) &&
         std::ranges::find(kOthers, name) == kOthers.end() && !name.ends_with(".index.json") &&
         !name.starts_with('.') && file.size.value_or(0) <= kMostSettingsBytes;
}

std::vector<RemoteFile> settings_in(const Listing& listing) {
  std::vector<RemoteFile> files;
  std::ranges::copy_if(listing.files, std::back_inserter(files), is_settings);
  return files;
}

bool has_ending(const Listing& listing, std::string_view end) {
  return std::ranges::any_of(listing.files,
                             [&](const RemoteFile& file) { return file.name.ends_with(end); });
}

// The file with the other parts of its model, and its vision part.
Result<ChosenFiles> with_parts(const Listing& listing, const RemoteFile& first) {
  ChosenFiles chosen{{first}};
  if (!is_gguf_model_name(first.name)) return chosen;
  const auto part = gguf_part_name(first.name);
  for (int64_t i = 2; part && i <= part->count; ++i) {
    const RemoteFile* file = find_file(listing.files, part->path(i));
    if (file == nullptr)
      return unprocessable(fmt::format("{} is one of {} parts, of which {} is missing", first.name,
                                       part->count, part->path(i)));
    chosen.files.push_back(*file);
  }
  std::vector<std::string> names;
  for (const RemoteFile& file : listing.files)
    if (file.name.ends_with(".gguf")) names.push_back(file.name);
  const MmprojChoice vision = choose_mmproj(names);
  if (!vision.file.empty() && !vision.several)
    chosen.files.push_back(*find_file(listing.files, vision.file));
  return chosen;
}

Result<ChosenFiles> choose_gguf(const Listing& listing, const HubName& name) {
  std::vector<RemoteFile> found;
  for (const RemoteFile& file : listing.files)
    if (is_gguf_model_name(file.name)) found.push_back(file);
  if (!name.file.empty()) {
    if (const RemoteFile* file = find_file(listing.files, name.file))
      return with_parts(listing, *file);
    return unprocessable(fmt::format("{} has no file {}", name.id(), name.file));
  }
  if (found.size() == 1) return with_parts(listing, found.front());
  if (found.empty()) return unprocessable(name.id() + " has the vision part of a model alone");
  return unprocessable(
      fmt::format("{} has {} GGUF files: give one of them, such as {}/{}, as the model", name.id(),
                  found.size(), name.id(), found.front().name));
}

Result<ChosenFiles> choose_adapter(const Listing& listing, const HubName& name) {
  if (find_file(listing.files, kAdapterConfig) == nullptr)
    return unprocessable(fmt::format(
        "{} is not a PEFT adapter: it has no {}{}", name.id(), kAdapterConfig,
        find_file(listing.files, kModelConfig) != nullptr ? ", but the config.json of a model"
                                                          : ""));
  ChosenFiles chosen{settings_in(listing)};
  for (const char* file : kAdapterWeights) {
    const RemoteFile* weights = find_file(listing.files, file);
    if (weights == nullptr) continue;
    chosen.files.push_back(*weights);
    // A value head is refused by name once it is read; it must not be passed over.
    if (const RemoteFile* head = find_file(listing.files, "value_head.safetensors"))
      chosen.files.push_back(*head);
    return chosen;
  }
  if (find_file(listing.files, "adapter_model.bin") != nullptr)
    return unprocessable(name.id() +
                         " has its tensors in adapter_model.bin (a pickle) alone, which is not "
                         "read, because reading it runs code that it holds");
  return unprocessable(fmt::format("{} has no {}", name.id(), kAdapterWeights[0]));
}

Result<ChosenFiles> choose_model(const Listing& listing, const HubName& name) {
  if (!name.file.empty()) return choose_gguf(listing, name);
  const bool has_config = find_file(listing.files, kModelConfig) != nullptr;
  ChosenFiles chosen{settings_in(listing)};
  if (has_config)
    for (const char* weights : {kModelWeights, kWeightsIndex})
      if (const RemoteFile* file = find_file(listing.files, weights)) {
        chosen.files.push_back(*file);
        chosen.indexed = file->name == kWeightsIndex;
        return chosen;
      }
  if (has_ending(listing, ".gguf")) return choose_gguf(listing, name);
  if (!has_config && find_file(listing.files, kAdapterConfig) != nullptr)
    return unprocessable(name.id() +
                         " is an adapter: give its base model as the model, and the adapter with "
                         "--lora-modules NAME=" +
                         name.id() + ", or --adapter of valora generate");
  if (!has_config)
    return unprocessable(name.id() +
                         " is neither a model (it has no config.json) nor an adapter (it has no "
                         "adapter_config.json)");
  return unprocessable(fmt::format(
      "{} has no {} and no {}{}", name.id(), kModelWeights, kWeightsIndex,
      has_ending(listing, ".bin") ? "; its weights are pickles (.bin), which are not read" : ""));
}

}  // namespace

bool is_weights(const std::string& file) {
  return file.ends_with(".safetensors") || file.ends_with(".gguf");
}

Result<ChosenFiles> choose_files(const Listing& listing, Kind kind, const HubName& name) {
  const bool adapter = find_file(listing.files, kAdapterConfig) != nullptr &&
                       find_file(listing.files, kModelConfig) == nullptr;
  if (kind == Kind::kAdapter || (kind == Kind::kAny && adapter && name.file.empty()))
    return choose_adapter(listing, name);
  return choose_model(listing, name);
}

Result<std::vector<RemoteFile>> shards_of(const Listing& listing,
                                          const std::vector<std::string>& shards,
                                          const HubName& name) {
  std::vector<RemoteFile> files;
  for (const std::string& shard : shards) {
    const RemoteFile* file = find_file(listing.files, shard);
    if (file == nullptr || !shard.ends_with(".safetensors"))
      return unprocessable(
          fmt::format("{} of {} names {}, which is not among its safetensors files", kWeightsIndex,
                      name.id(), shard));
    files.push_back(*file);
  }
  return files;
}

}  // namespace valora::hub
