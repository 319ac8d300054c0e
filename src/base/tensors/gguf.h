// A GGUF file of version 2 or 3, mapped or read: a header, metadata (keys and values), the names,
// shapes, types and offsets of tensors, then their data. All numbers are little-endian. Every
// length, count and offset is checked before use. As in the reference reader, tensors follow one
// another in the data, each at the next multiple of the alignment. A model may be split into
// several such files; the metadata is in the first.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/files/file.h"
#include "base/result.h"

namespace valora {

// The supported tensor types. A row's values are stored in blocks.
enum class GgufType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS
};

struct GgufBlock {
  const char* name;  // "Q4_K"
  int64_t values;    // per block
  size_t bytes;      // per block
};
const GgufBlock& block_of(GgufType type);

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::kF32;
  std::vector<int64_t> shape;      // row-major: the last dimension is contiguous
  size_t part = 0;                 // index into Gguf::parts()
  size_t begin = 0;                // offset of its bytes in that file
  std::span<const uint8_t> bytes;  // within that file's bytes
};

// The format's number for the string type, and the value of a number of any numeric type.
inline constexpr uint32_t kGgufText = 8;
double gguf_number(uint32_t type, const uint8_t* at);

// Metadata by key. Errors of the readers are kUnprocessable and name the file and the key.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string path = {}) : path_(std::move(path)) {}

  bool has(const std::string& key) const { return values_.contains(key); }
  // Any integer type. An absent value is an error unless there is a fallback.
  Result<int64_t> integer(const std::string& key, std::optional<int64_t> fallback = {}) const;
  Result<double> number(const std::string& key, std::optional<double> fallback = {}) const;
  Result<bool> flag(const std::string& key, bool fallback) const;
  // Checked to be UTF-8.
  Result<std::string> text(const std::string& key, std::optional<std::string> fallback = {}) const;
  // A list of strings. Views into the file's memory, not checked to be UTF-8; empty if the key is
  // absent.
  Result<std::vector<std::string_view>> texts(const std::string& key) const;
  // A list of numbers or flags, or a single one; empty if the key is absent.
  Result<std::vector<double>> numbers(const std::string& key) const;
  std::vector<std::string> keys() const;  // ascending

  const std::string& path() const { return path_; }
  Error wrong(const std::string& key, const std::string& why) const;

 private:
  friend class GgufReader;
  struct Array {
    uint32_t type = 0;  // element type, as the file numbers it
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
  // Maps the file, and the other parts of a split model. Only for files that do not change, like
  // SafeTensors::open(). kUnprocessable names the offending key or tensor, or the missing part;
  // `path` must be the first part.
  static Result<std::shared_ptr<const Gguf>> open(const std::string& path);
  // One file, without other parts. `path` names the source in errors.
  static Result<std::shared_ptr<const Gguf>> from_bytes(std::string bytes, const std::string& path);

  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the files' order
  const GgufTensor* find(const std::string& name) const;
  const std::string& path() const { return metadata_.path(); }
  const std::vector<std::string>& parts() const { return parts_; }  // the files' paths

 private:
  static Result<std::shared_ptr<Gguf>> parse(const std::string& path,
                                             std::span<const uint8_t> bytes,
                                             std::shared_ptr<const void> owner);
  // Adds the other files of a split model.
  Status add_parts();

  std::vector<std::string> parts_;
  std::vector<std::shared_ptr<const void>> owners_;  // keep the bytes alive
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t> index_;  // name → index into tensors_
};

}  // namespace valora
