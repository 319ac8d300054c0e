// Typed access to config.json, in the forms of transformers 4 (flat) and 5 (nested). Every read may
// throw a LoadError that names the file and the key.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "models/spec/gguf_model.h"

namespace valora::models {

constexpr int64_t kMaxLayers = 4096;

class ConfigReader {
 public:
  ConfigReader(Json object, std::string file)
      : object_(std::move(object)), file_(std::move(file)) {}

  // The sub-object `key`, or this object if there is none (the flat form).
  ConfigReader nested_or_self(const std::string& key) const;
  ConfigReader child(const std::string& key) const;  // throws if missing
  bool has(const std::string& key) const {
    return object_.contains(key) && !object_.at(key).is_null();
  }

  int64_t integer(const std::string& key) const;  // in 1 … 2^30
  int64_t integer(const std::string& key, int64_t fallback) const;
  // In 1 … most. For sizes that determine an allocation or are multiplied before any tensor is
  // checked.
  int64_t at_most(const std::string& key, int64_t most, std::optional<int64_t> fallback = {}) const;
  double number(const std::string& key, double fallback) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  std::vector<int64_t> integers(const std::string& key) const;   // empty if absent
  std::vector<std::string> texts(const std::string& key) const;  // empty if absent

  const Json& json() const { return object_; }
  const std::string& file() const { return file_; }
  [[noreturn]] void refuse(const std::string& why) const;
  // Refuses keys with which some release of transformers changes individual layers of any model.
  void refuse_changed_layers() const;

 private:
  Json object_;
  std::string file_;
};

// Reads a model folder's config.json, or the equivalent from the metadata of GGUF files
// (open_gguf_model()). Errors name the folder or the file.
Result<ConfigReader> read_model_config(const ModelSource& source);

// Quantisation that older writers describe in a file of its own. Adds DIR/quantize_config.json
// (AutoGPTQ) or DIR/quant_config.json (AutoAWQ) to `config`, the object of config.json, as its
// "quantization_config", unless it already has one.
Status add_older_quantisation(const std::string& dir, Json& config);

}  // namespace valora::models
