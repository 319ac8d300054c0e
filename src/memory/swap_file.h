// The swap space for KV blocks: an unnamed file of fixed size, reserved at start-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "memory/block_arena.h"

namespace valora::memory {

// Thread-safe as long as threads use different blocks. Digests of the blocks are kept in memory,
// because others may reach the file (/proc/PID/fd) and its disk may fail.
class SwapFile {
 public:
  // Creates the file in `folder` and unlinks it, so that it disappears with the process.
  // kInvalidArgument, naming folder and bytes, if the folder is missing or not writable, or the
  // disk is too small.
  static Result<std::unique_ptr<SwapFile>> create(const std::string& folder, int32_t blocks,
                                                  size_t block_bytes);
  ~SwapFile();
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;

  // bytes: block_bytes long. kInternal: the copy failed or was short, or the block no longer holds
  // what was written; the destination is then undefined.
  Status write(BlockId block, std::span<const std::byte> bytes);
  Status read(BlockId block, std::span<std::byte> bytes) const;

 private:
  SwapFile(int file, size_t block_bytes) : file_(file), block_bytes_(block_bytes) {}

  int file_;
  size_t block_bytes_;
  std::vector<std::optional<Digest>> written_;  // by block; absent: nothing complete was written
};

}  // namespace valora::memory
