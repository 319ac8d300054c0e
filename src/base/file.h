// Reads of whole files under a size limit, and read-only memory maps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace valora {

Result<std::string> read_file(const std::string& path, size_t max_bytes);
bool file_exists(const std::string& path);

// A file mapped read-only. The bytes live as long as the object.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const uint8_t> bytes)
      : path_(std::move(path)), bytes_(bytes) {}
  std::string path_;
  std::span<const uint8_t> bytes_;
};

}  // namespace valora
