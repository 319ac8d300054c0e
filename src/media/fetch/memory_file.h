// An in-memory file with read and seek callbacks for libav. `opaque` is the MemoryFile.
#pragma once

#include <cstdint>
#include <span>

namespace valora::media {

struct MemoryFile {
  std::span<const uint8_t> bytes;
  int64_t at = 0;
};

int read_memory(void* opaque, uint8_t* out, int count);
int64_t seek_memory(void* opaque, int64_t offset, int whence);

}  // namespace valora::media
