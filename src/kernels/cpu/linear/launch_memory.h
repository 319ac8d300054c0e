// Memory that a launch takes from its thread and gives back at its end. The system would have to
// clear fresh pages, which takes longer than what is written to them: 2.5 MB of rounded inputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace valora::kernels {

class LaunchMemory {
 public:
  // Uninitialised, aligned for any fundamental type.
  explicit LaunchMemory(int64_t bytes) : block_(take(bytes)) {}
  ~LaunchMemory() { give_back(std::move(block_)); }
  LaunchMemory(const LaunchMemory&) = delete;
  LaunchMemory& operator=(const LaunchMemory&) = delete;

  uint8_t* data() const { return block_.data.get(); }

  // Bytes that the calling thread keeps for its next launches; at most kMostKept.
  static int64_t kept() {
    int64_t bytes = 0;
    for (const Block& block : spare()) bytes += block.bytes;
    return bytes;
  }
  static constexpr int64_t kMostKept = 32 << 20;

 private:
  struct Block {
    std::unique_ptr<uint8_t[]> data;
    int64_t bytes = 0;
  };

  // In ascending order of size.
  static std::vector<Block>& spare() {
    thread_local std::vector<Block> blocks;
    return blocks;
  }

  static Block take(int64_t bytes) {
    auto& blocks = spare();
    const auto fits = std::ranges::lower_bound(blocks, bytes, {}, &Block::bytes);
    if (fits == blocks.end()) return {std::unique_ptr<uint8_t[]>(new uint8_t[bytes]), bytes};
    Block block = std::move(*fits);
    blocks.erase(fits);
    return block;
  }

  static void give_back(Block block) {
    auto& blocks = spare();
    if (block.bytes > kMostKept) return;
    const auto at = std::ranges::lower_bound(blocks, block.bytes, {}, &Block::bytes);
    blocks.insert(at, std::move(block));
    while (kept() > kMostKept) blocks.erase(blocks.begin());  // large ones save the most
  }

  Block block_;
};

}  // namespace valora::kernels
