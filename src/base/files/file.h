// Reads files, whole up to a size limit or in parts, and maps them read-only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace valora {

Result<std::string> read_file(const std::string& path, size_t max_bytes);
bool file_exists(const std::string& path);

// Tells a file from nearly any other file that was at its path, without reading its content.
struct FileIdentity {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0;
};

// A regular file, open for reading.
class InputFile {
 public:
  // Errors: kNotFound; kInvalidArgument if it is not a regular file, cannot be opened, or the path
  // contains a zero byte; kPayloadTooLarge if it has more than max_bytes.
  static Result<InputFile> open(const std::string& path, size_t max_bytes = SIZE_MAX);
  // Takes ownership of a descriptor open for reading, or -1 if opening failed and set errno.
  // Messages show `name` as the path. Errors: those of open().
  static Result<InputFile> from_descriptor(std::string name, int descriptor,
                                           size_t max_bytes = SIZE_MAX);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_; }
  // The identity at the time of opening.
  const FileIdentity& identity() const { return identity_; }
  size_t size() const { return identity_.size; }
  // Fills `out` with the bytes starting at `begin`. Returns fewer bytes at the end of the file.
  // Error: kInvalidArgument if the file cannot be read.
  Result<size_t> read(size_t begin, std::span<char> out) const;
  // The whole content.
  Result<std::string> text() const;

 private:
  InputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
  FileIdentity identity_;
};

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
