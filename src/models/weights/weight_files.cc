#include "models/weights/weight_files.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files/file.h"
#include "base/json/json.h"

namespace valora::models {
namespace {

namespace fs = std::filesystem;

constexpr char kWhole[] = "/model.safetensors";
constexpr char kIndex[] = "/model.safetensors.index.json";

Error no_weights(const std::string& dir) {
  std::error_code ignored;
  std::string found;
  for (const auto& entry : fs::directory_iterator(dir, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf"))
      found = "; next to a config.json, GGUF files such as " + name +
              " are not read: give the file itself as the model";
    if (name.starts_with("pytorch_model") && found.empty())
      found =
          "; pickled pytorch_model.bin files are not read: load the folder with transformers and "
          "save it with save_pretrained()";
  }
  return not_found(dir + " has no model.safetensors and no model.safetensors.index.json" + found,
                   dir);
}

// The paths of the shards.
Result<std::set<std::string>> read_index(const std::string& dir) {
  const std::string path = dir + kIndex;
  VALORA_TRY(json, read_json_file(path));
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return unprocessable(path + ": \"weight_map\" is missing", path);
  std::set<std::string> paths;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string() ||
        fs::path(file.get<std::string>()).filename() != file.get<std::string>())
      return unprocessable(path + ": the file of " + tensor + " is not a plain file name", path);
    paths.insert(dir + "/" + file.get<std::string>());
  }
  return paths;
}

// True if the folder holds shards listed in its index. An unreadable index counts as none: it does
// not matter if the whole file exists.
bool has_shards(const std::string& dir) {
  const auto paths = read_index(dir);
  return paths.ok() && std::ranges::any_of(*paths, [&](const std::string& path) {
           return path != dir + kWhole && file_exists(path);
         });
}

}  // namespace

Result<WeightFiles> find_weight_files(const std::string& dir) {
  if (file_exists(dir + kWhole))
    return WeightFiles{{dir + kWhole}, file_exists(dir + kIndex) && has_shards(dir)};
  if (!file_exists(dir + kIndex)) return no_weights(dir);
  VALORA_TRY(paths, read_index(dir));
  return WeightFiles{{paths.begin(), paths.end()}, false};
}

}  // namespace valora::models
