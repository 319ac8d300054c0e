#include "cli/options/default_mm_loras.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files/file.h"
#include "base/json/json.h"

namespace valora::cli {
namespace {

constexpr const char* kOption = "--default-mm-loras";

Status check_modality(const std::string& modality) {
  if (modality == "image" || modality == "video") return {};
  if (modality == "audio") return invalid(fmt::format("{}: audio is not supported", kOption));
  return invalid(
      fmt::format("{} has \"{}\"; the modalities are image and video", kOption, modality));
}

}  // namespace

Result<std::vector<DefaultMmLora>> read_default_mm_loras(const std::string& text,
                                                         const std::vector<std::string>& known) {
  std::vector<DefaultMmLora> defaults;
  if (text.empty()) return defaults;
  VALORA_TRY(json, parse_json(text, kOption));
  if (!json.is_object())
    return invalid(
        fmt::format(R"({} takes an object such as {{"image": "NAME or FOLDER"}})", kOption));
  for (const auto& [modality, value] : json.items()) {
    VALORA_CHECK(check_modality(modality));
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      return invalid(fmt::format("{}: \"{}\" must be the name or the folder of an adapter", kOption,
                                 modality));
    const auto adapter = value.get<std::string>();
    if (std::ranges::find(known, adapter) != known.end()) {
      defaults.push_back({modality, adapter, {}});
    } else if (file_exists(adapter + "/adapter_config.json")) {
      defaults.push_back({modality, modality, adapter});
    } else {
      return invalid(fmt::format(
          "{}: \"{}\" is neither an adapter that is loaded at start nor a folder with an "
          "adapter_config.json",
          kOption, adapter));
    }
  }
  return defaults;
}

}  // namespace valora::cli
