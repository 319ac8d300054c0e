// Reads the keys of one YAML map. Errors name file, line and key. Torch-free.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "yaml/tree.h"

namespace valora::yaml {

// `, did you mean "…"?` if a known word is close; otherwise `; known: …`.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

// A view: file and node must outlive it. Missing keys read as nullopt. A key without a value is an
// error.
class Fields {
 public:
  // `within` prefixes the keys in errors: "" or "teacher.". Unknown keys are errors.
  static Result<Fields> open(const std::string& file, const Node& node, const std::string& within,
                             std::initializer_list<std::string_view> known);

  const Node* find(std::string_view key) const;
  const std::string& file() const { return *file_; }
  int line() const { return node_->line; }
  std::string name(std::string_view key) const {
    return within_ + std::string(key);
  }  // as in error messages

  Result<std::optional<std::string>> text(std::string_view key) const;  // not empty
  Result<std::string> required_text(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key, double least, double most) const;
  Result<std::optional<int64_t>> integer(std::string_view key, int64_t least, int64_t most) const;
  Result<std::vector<std::string>> texts(
      std::string_view key) const;  // distinct; empty if the key is missing
  Result<std::vector<double>> numbers(std::string_view key) const;  // empty if the key is missing

  // "FILE:LINE: "KEY" …", with the key's line if present, otherwise the map's.
  Error error(std::string_view key, const std::string& what) const;

 private:
  Fields(const std::string& file, const Node& node, std::string within)
      : file_(&file), node_(&node), within_(std::move(within)) {}
  Result<std::optional<std::string>> scalar(std::string_view key,
                                            const std::string& expected) const;

  const std::string* file_;
  const Node* node_;
  std::string within_;
};

}  // namespace valora::yaml
