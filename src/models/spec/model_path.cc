#include "models/spec/model_path.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/tensors/gguf.h"
#include "base/tensors/gguf_files.h"
#include "base/text/strings.h"

namespace valora::models {
namespace {

namespace fs = std::filesystem;

// ORGANISATION/NAME
bool is_hub_name(const std::string& path) {
  const size_t slash = path.find('/');
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ||
           c == '/';
  };
  return slash != std::string::npos && slash > 0 && slash + 1 < path.size() &&
         path.find('/', slash + 1) == std::string::npos && path[0] != '.' &&
         std::ranges::all_of(path, plain);
}

std::string first_bytes(const std::string& path) {
  std::array<char, 4> bytes{};
  const auto file = InputFile::open(path);
  const auto size = file.ok() ? file->read(0, bytes) : Result<size_t>(size_t{0});
  return {bytes.data(), size.ok() ? *size : 0};
}

Error describe_file(const std::string& path) {
  const auto is = [&](const std::string& what, const std::string& remedy) {
    return unprocessable(path + " is " + what + ": " + remedy, path);
  };
  const std::string begin = first_bytes(path);
  constexpr std::array<const char*, 9> kArchives = {".zip", ".tar", ".tgz", ".gz", ".bz2",
                                                    ".xz",  ".zst", ".7z",  ".rar"};
  if (begin == "PK\x03\x04" ||
      std::ranges::any_of(kArchives, [&](const char* end) { return path.ends_with(end); }))
    return is("an archive", "unpack it and give the folder");
  if (path.ends_with(".safetensors"))
    return is("a file of weights",
              "give the folder that holds it together with config.json and tokenizer.json");
  return is("a file", "give the folder of a model");
}

Error describe_adapter(const std::string& path) {
  const auto config = read_json_file(path + "/adapter_config.json");
  std::string base;
  if (config.ok() && config->is_object())
    if (const auto name = field_or<std::string>(*config, "base_model_name_or_path", ""); name.ok())
      base = *name;
  return unprocessable(
      path + " is an adapter: give the folder of its base model" +
          (base.empty() ? std::string() : " (" + shortened(base) + ")") +
          " as the model, and the adapter with --lora-modules NAME=PATH, or --adapter of valora "
          "generate",
      path);
}

// Meta's layout has params.json as well, beside consolidated.00.pth.
bool is_mistral_layout(const std::string& path) {
  if (file_exists(path + "/tekken.json")) return true;
  std::error_code ignored;
  return std::ranges::any_of(fs::directory_iterator(path, ignored), [](const auto& entry) {
    return entry.path().filename().string().starts_with("consolidated") &&
           entry.path().extension() == ".safetensors";
  });
}

Error describe_folder(const std::string& path) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored))
    if (entry.path().extension() == ".gguf")
      return unprocessable(path +
                               " has no config.json, but GGUF files: give one of them, such as " +
                               entry.path().string() + ", as the model",
                           path);
  if (is_mistral_layout(path))
    return unprocessable(
        path +
            " has no config.json: it is in Mistral's own layout (params.json and "
            "consolidated.safetensors), which is not read; take the model's folder in "
            "transformers' format, with config.json, model.safetensors and tokenizer.json",
        path);
  if (file_exists(path + "/params.json"))
    return unprocessable(
        path + " has no config.json but a params.json: convert Meta's layout to Hugging Face's",
        path);
  return not_found(path +
                       " is neither a model (it has no config.json) nor an adapter (it has no "
                       "adapter_config.json)",
                   path);
}

}  // namespace

Status check_model_folder(const std::string& path) {
  if (!file_exists(path)) {
    if (!is_hub_name(path)) return not_found(path + " does not exist", path);
    return not_found(path +
                         " is not a folder, and models are not loaded by name here: run "
                         "valora inspect " +
                         path + " and give the folder that it names",
                     path);
  }
  if (find_gguf(path)) return {};
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return describe_file(path);
  if (file_exists(path + "/config.json")) return {};
  if (file_exists(path + "/adapter_config.json")) return describe_adapter(path);
  return describe_folder(path);
}

}  // namespace valora::models
