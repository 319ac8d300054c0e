// From URL to VisualInput in one call, for the media workers: fetch, decode, process. Equal content
// is prepared once.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "media/processors/processor.h"

namespace valora::media {

struct LoaderStats {
  size_t bytes = 0, entries = 0;  // in the cache
  uint64_t queries = 0;           // items requested
  uint64_t hits = 0;              // served from the cache or by another thread's preparation
};

// The bytes of one image or video, and the digest that identifies the prepared input.
struct FetchedMedia {
  MediaKind kind = MediaKind::kImage;
  bool frame_list = false;
  std::vector<Bytes> items;  // one, or the frames of a list
  Digest digest;
  std::shared_ptr<const Processor> processor;  // prepares the items
};

// Thread-safe. Caches prepared inputs by content digest, up to cache_bytes (LRU). If two threads
// request equal content at the same time, the second waits for the first. Refuses media with more
// than limits.max_visual_tokens tokens before making their patches. If a stop is requested,
// downloads end, and video work ends at the next frame: kCancelled. Other threads waiting for the
// same preparation still get it.
class Loader {
 public:
  Loader(std::shared_ptr<const Processor> processor, FetchPolicy policy, Limits limits,
         size_t cache_bytes);
  ~Loader();

  // processor: a variant of the loader's own made by Processor::with(); null: the loader's own.
  Result<std::shared_ptr<const VisualInput>> load(
      const std::string& url, MediaKind kind, const std::stop_token& stop = {},
      std::shared_ptr<const Processor> processor = nullptr);
  // The steps of load(). find(): null if the item still has to be prepared.
  Result<FetchedMedia> fetch(const std::string& url, MediaKind kind,
                             const std::stop_token& stop = {},
                             std::shared_ptr<const Processor> processor = nullptr) const;
  std::shared_ptr<const VisualInput> find(const FetchedMedia& media);
  Result<std::shared_ptr<const VisualInput>> prepare(const FetchedMedia& media,
                                                     const std::stop_token& stop = {});
  // Limits the tokens of every item, in addition to limits.max_visual_tokens. Call before the first
  // load.
  void limit_tokens(int max_tokens);
  LoaderStats stats() const;
  const Processor& processor() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::media
