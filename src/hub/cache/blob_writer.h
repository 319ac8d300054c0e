// A blob while it is loaded: HASH.incomplete holds its first bytes, as huggingface_hub leaves them
// too, and becomes the blob once it is whole and its hash is right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/content_hash.h"

namespace valora::hub {

class BlobWriter {
 public:
  // Opens the file with the bytes that it has from before. size, digest: of the whole blob.
  static Result<BlobWriter> open(const std::string& path, uint64_t size, const std::string& digest);
  BlobWriter(BlobWriter&& other) noexcept;
  BlobWriter& operator=(BlobWriter&&) = delete;
  ~BlobWriter();

  uint64_t written() const { return written_; }
  bool whole() const { return written_ == size_; }
  // True if bytes from before are part of the file.
  bool continued() const { return continued_; }
  // On error (no space) the file keeps what was written.
  Status append(std::string_view bytes);
  Status restart();
  // Of a whole file: makes it the blob at this path and returns true, or removes it and returns
  // false if its hash is wrong.
  Result<bool> finish(const std::string& blob);

 private:
  BlobWriter(std::string path, int file, uint64_t size, const std::string& digest)
      : path_(std::move(path)), file_(file), size_(size), hash_(digest, size) {}
  Status hash_what_is_there();
  Error failed(int number) const;

  std::string path_;
  int file_;
  uint64_t size_, written_ = 0;
  bool continued_ = false;
  ContentHash hash_;
};

}  // namespace valora::hub
