// The keys of one YAML map, read with errors that name file, line and key. Torch-free.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "generator/data/yaml_tree.h"

namespace valora::generator {

// `, did you mean "…"?` of the nearest one, where one is near; else `; known: …`.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

// A view: file and node outlive it. Absent keys read as none; a key without a value is an error.
class YamlFields {
 public:
  // `within` begins the keys' names in errors: "" or "teacher.". Another key than the known ones is
  // an error.
  static Result<YamlFields> open(const std::string& file, const YamlNode& node,
                                 const std::string& within,
                                 std::initializer_list<std::string_view> known);

  const YamlNode* find(std::string_view key) const;
  const std::string& file() const { return *file_; }
  int line() const { return node_->line; }
  std::string name(std::string_view key) const {
    return within_ + std::string(key);
  }  // as errors have it

  Result<std::optional<std::string>> text(std::string_view key) const;  // not empty
  Result<std::string> required_text(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key, double least, double most) const;
  Result<std::optional<int64_t>> integer(std::string_view key, int64_t least, int64_t most) const;
  Result<std::vector<std::string>> texts(
      std::string_view key) const;  // distinct; empty where the key is absent
  Result<std::vector<double>> numbers(std::string_view key) const;  // empty where the key is absent

  // "FILE:LINE: "KEY" …", of the key's line where it is there, else of the map's.
  Error error(std::string_view key, const std::string& what) const;

 private:
  YamlFields(const std::string& file, const YamlNode& node, std::string within)
      : file_(&file), node_(&node), within_(std::move(within)) {}
  Result<std::optional<std::string>> scalar(std::string_view key,
                                            const std::string& expected) const;

  const std::string* file_;
  const YamlNode* node_;
  std::string within_;
};

}  // namespace valora::generator
