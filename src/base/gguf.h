// A GGUF file of version 2 or 3, mapped or read: a header, metadata (keys with values), the names,
// shapes, types and places of tensors, then their data. All numbers are little-endian. Every
// length, count and offset is checked before use. As in the reference reader, tensors follow one
// another in the data, each at the next multiple of the alignment.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace valora {

// The types of tensors that are read. A row's values are stored in blocks.
enum class GgufType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K
};

struct GgufBlock {
  const char* name;  // "Q4_K"
  int64_t values;    // of a block
  size_t bytes;      // of a block
};
const GgufBlock& block_of(GgufType type);

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::kF32;
  std::vector<int64_t> shape;      // row-major: the last dimension is adjacent in memory
  size_t begin = 0;                // of its bytes in the file
  std::span<const uint8_t> bytes;  // within the file's bytes
};

// The type of strings in metadata, as the format numbers it, and a value of any type of numbers.
inline constexpr uint32_t kGgufText = 8;
double gguf_number(uint32_t type, const uint8_t* at);

// Metadata by key. Errors of the readers are kUnprocessable and name the file and the key.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string path = {}) : path_(std::move(path)) {}

  bool has(const std::string& key) const { return values_.contains(key); }
  // Numbers of any integer type; absent values are an error without a fallback.
  Result<int64_t> integer(const std::string& key, std::optional<int64_t> fallback = {}) const;
  Result<double> number(const std::string& key, std::optional<double> fallback = {}) const;
  Result<bool> flag(const std::string& key, bool fallback) const;
  // UTF-8, as it is checked.
  Result<std::string> text(const std::string& key, std::optional<std::string> fallback = {}) const;
  // A list of strings, in the file's memory and of any bytes; empty if there is no such key.
  Result<std::vector<std::string_view>> texts(const std::string& key) const;
  // A list of numbers or flags, or a single one; empty if there is no such key.
  Result<std::vector<double>> numbers(const std::string& key) const;
  std::vector<std::string> keys() const;  // ascending

  const std::string& path() const { return path_; }
  Error wrong(const std::string& key, const std::string& why) const;

 private:
  friend class GgufReader;
  struct Array {
    uint32_t type = 0;  // of its elements, as the file numbers it
    uint64_t count = 0;
    std::span<const uint8_t> bytes;
  };
  using Value = std::variant<bool, int64_t, double, std::string_view, Array>;
  const Value* find(const std::string& key) const;

  std::string path_;
  std::map<std::string, Value, std::less<>> values_;
};

class Gguf {
 public:
  // Maps the file. As SafeTensors::open(): only for files that do not change. kUnprocessable names
  // the key or the tensor that is at fault.
  static Result<std::shared_ptr<const Gguf>> open(const std::string& path);
  // `path` names the source in errors.
  static Result<std::shared_ptr<const Gguf>> from_bytes(std::string bytes, const std::string& path);

  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the file's order
  const GgufTensor* find(const std::string& name) const;
  const std::string& path() const { return metadata_.path(); }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  static Result<std::shared_ptr<const Gguf>> parse(const std::string& path,
                                                   std::span<const uint8_t> bytes,
                                                   std::shared_ptr<const void> owner);

  std::span<const uint8_t> bytes_;
  std::shared_ptr<const void> owner_;  // keeps the bytes alive
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t> index_;  // into tensors_
};

// The GGUF file that a model's path means: the path itself if it is a file that is one by its first
// bytes or its name, or the only one in a folder without config.json, adapter_config.json and
// tokenizer.json. Absent if it is something else; a folder with several is something else.
std::optional<std::string> find_gguf(const std::string& path);

}  // namespace valora
