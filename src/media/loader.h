// URL to VisualInput in one call, for the media workers: fetch, decode, process. Equal bytes are
// prepared once.
#pragma once

#include <memory>
#include <string>

#include "media/processor.h"

namespace valora::media {

struct LoaderStats {
  uint64_t queries = 0;  // items requested
  uint64_t hits = 0;  // served from the cache of prepared inputs or by another thread's preparation
};

// Thread-safe. Caches prepared inputs by content digest, up to cache_bytes (LRU). If two threads
// request equal bytes at the same time, the second waits for the first. Media with more than
// limits.max_visual_tokens tokens are refused before their patches are made.
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
