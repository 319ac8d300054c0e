// URL to VisualInput in one call, for the media workers: fetch, decode, process, each piece of work
// done once for equal bytes.
#pragma once

#include <memory>
#include <string>

#include "media/processor.h"

namespace valora::media {

struct LoaderStats {
  uint64_t queries = 0;  // items asked for
  uint64_t hits = 0;     // answered from the cache of prepared inputs, or by another's preparation
};

// Thread-safe. Keeps prepared inputs by content digest up to cache_bytes (least recently used
// leave). Two threads asking for equal bytes at once prepare them once: the second waits for the
// first. What would stand for more than limits.max_visual_tokens is refused before its patches are
// made.
class Loader {
 public:
  Loader(std::shared_ptr<const Processor> processor, FetchPolicy policy, Limits limits,
         size_t cache_bytes);
  ~Loader();

  Result<std::shared_ptr<const VisualInput>> load(const std::string& url, MediaKind kind);
  Result<std::shared_ptr<const VisualInput>> load_image_bytes(std::span<const uint8_t> bytes);
  Result<std::shared_ptr<const VisualInput>> load_video_bytes(std::span<const uint8_t> bytes);
  LoaderStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::media
