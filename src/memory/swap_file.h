// The swap space of KV blocks: a file without a name, of a fixed size that is reserved at start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "memory/block_arena.h"

namespace valora::memory {

// Thread-safe for different blocks.
class SwapFile {
 public:
  // Creates the file in `folder` and removes its name, so that it goes with the process.
  // kInvalidArgument, with the folder and the bytes: the folder is missing, not writable, or the
  // disk too small.
  static Result<std::unique_ptr<SwapFile>> create(const std::string& folder, int32_t blocks,
                                                  size_t block_bytes);
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  // `bytes` of block_bytes. kInternal: the copy failed or was short; the target is undefined then.
  Status write(BlockId block, std::span<const std::byte> bytes) const;
  Status read(BlockId block, std::span<std::byte> bytes) const;

 private:
  SwapFile(int file, size_t block_bytes) : file_(file), block_bytes_(block_bytes) {}

  int file_;
  size_t block_bytes_;
};

}  // namespace valora::memory
