#include "generator/data/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files/write_file.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kManifestLimits{.max_bytes = size_t{16} << 20,
                                     .max_depth = 8,
                                     .max_values = size_t{1} << 20,
                                     .unique_keys = true};
constexpr size_t kMaxNameBytes = 256;

bool may_name_a_task(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), fits);
}

Status check_keys(const Json& object, std::initializer_list<const char*> known) {
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return invalid(fmt::format("unknown key \"{}\"", shortened(key, 60)));
  return {};
}

Result<std::optional<double>> read_share(const Json& object, const char* key) {
  VALORA_TRY(value, optional_field<double>(object, key));
  if (value && !(*value >= 0 && *value <= 1))
    return invalid(fmt::format("\"{}\" must be in 0 … 1", key));
  return value;
}

Result<std::vector<std::string>> read_labels(const Json& object) {
  std::vector<std::string> labels;
  if (!object.contains("labels") || object["labels"].is_null()) return labels;
  if (!object["labels"].is_array()) return invalid("\"labels\" must be a list of strings");
  for (const Json& label : object["labels"]) {
    if (!label.is_string()) return invalid("\"labels\" must be a list of strings");
    labels.push_back(label.get<std::string>());
    if (labels.back().empty() || std::ranges::count(labels, labels.back()) > 1)
      return invalid("\"labels\" has an empty or a repeated label");
  }
  return labels;
}

Result<std::optional<BoxFormat>> read_box_format(const Json& object) {
  if (!object.contains("boxes") || object["boxes"].is_null()) return std::optional<BoxFormat>();
  const Json& given = object["boxes"];
  if (!given.is_object()) return invalid("\"boxes\" must be an object");
  VALORA_CHECK(check_keys(given, {"scale", "labels"}));
  BoxFormat format;
  VALORA_TRY(scale, field_or<int32_t>(given, "scale", format.scale));
  VALORA_TRY(labels, field_or<bool>(given, "labels", format.labels));
  if (scale < 1 || scale > kLargestBoxScale)
    return invalid(fmt::format("\"boxes.scale\" must be in 1 … {}", kLargestBoxScale));
  return std::optional(BoxFormat{scale, labels});
}

Result<std::string> read_folder(const Json& object, const fs::path& start) {
  VALORA_TRY(folder, required_field<std::string>(object, "adapter"));
  if (folder.empty()) return invalid("\"adapter\" is empty");
  if (folder.find('\0') != folder.npos) return invalid("\"adapter\" contains a zero byte");
  fs::path path = (start / folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a trailing slash
  std::error_code error;
  if (!fs::is_directory(path, error))
    return invalid(fmt::format("the adapter {} is not a folder", path.string()));
  return path.string();
}

Result<ManifestEntry> read_entry(const Json& object, const fs::path& start) {
  if (!object.is_object()) return invalid("must be an object");
  VALORA_CHECK(check_keys(
      object, {"adapter", "head", "prompt", "metric", "floor", "accuracy", "labels", "boxes"}));
  ManifestEntry entry;
  VALORA_TRY(head, optional_field<std::string>(object, "head"));
  if (head && head->empty())
    return invalid("\"head\" is empty; leave it out where the language model answers");
  VALORA_TRY(prompt, field_or<std::string>(object, "prompt", ""));
  VALORA_TRY(metric, field_or<std::string>(object, "metric", ""));
  VALORA_TRY(floor, read_share(object, "floor"));
  VALORA_TRY(accuracy, read_share(object, "accuracy"));
  VALORA_TRY(labels, read_labels(object));
  VALORA_TRY(boxes, read_box_format(object));
  VALORA_TRY(folder, read_folder(object, start));
  return ManifestEntry{std::move(folder),
                       std::move(head),
                       std::move(prompt),
                       std::move(metric),
                       floor,
                       accuracy,
                       std::move(labels),
                       boxes};
}

fs::path folder_of(const std::string& path) {
  return fs::absolute(path).lexically_normal().parent_path();
}

// Relative if inside the manifest's folder, so that both can be moved together.
std::string written_path(const std::string& adapter, const fs::path& start) {
  const fs::path path = (start / adapter).lexically_normal();
  const fs::path relative = path.lexically_relative(start);
  return !relative.empty() && *relative.begin() != ".." ? relative.string() : path.string();
}

Json entry_json(const ManifestEntry& entry, const fs::path& start) {
  Json json{{"adapter", written_path(entry.adapter, start)},
            {"prompt", entry.prompt},
            {"metric", entry.metric}};
  if (entry.head) json["head"] = *entry.head;
  if (entry.floor) json["floor"] = *entry.floor;
  if (entry.accuracy) json["accuracy"] = *entry.accuracy;
  if (!entry.labels.empty()) json["labels"] = entry.labels;
  if (entry.boxes) json["boxes"] = {{"scale", entry.boxes->scale}, {"labels", entry.boxes->labels}};
  return json;
}

}  // namespace

Result<Manifest> read_manifest(const std::string& path) {
  VALORA_TRY(json, read_json_file(path, kManifestLimits));
  if (!json.is_object() || !json.contains("tasks") || !json["tasks"].is_object())
    return invalid(path + ": a manifest is {\"tasks\": {NAME: {\"adapter\": …}}}", path);
  if (const Status known = check_keys(json, {"tasks"}); !known.ok())
    return invalid(path + ": " + known.error().message, path);
  Manifest manifest;
  for (const auto& [name, object] : json["tasks"].items()) {
    const std::string where = fmt::format("{}: task \"{}\": ", path, shortened(name, 60));
    if (!may_name_a_task(name))
      return invalid(where + "a name has 1 to 256 letters, digits, \"-\", \"_\" and \".\"", path);
    auto entry = read_entry(object, folder_of(path));
    if (!entry.ok()) return invalid(where + entry.error().message, path);
    manifest.tasks.emplace(name, std::move(*entry));
  }
  return manifest;
}

Status write_manifest(const Manifest& manifest, const std::string& path) {
  Json tasks = Json::object();
  for (const auto& [name, entry] : manifest.tasks) tasks[name] = entry_json(entry, folder_of(path));
  return write_file(
      path, Json{{"tasks", tasks}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace valora::generator
