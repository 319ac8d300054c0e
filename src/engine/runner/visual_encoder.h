// Encodes the images and videos of requests, in pieces that fit between steps
// (models/towers/encoding.h).
#pragma once

#include <ATen/ATen.h>

#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/memory/tensor_cache.h"
#include "models/model.h"
#include "ops/launch/launched_work.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// An image, a video, or a part of one, that a request needs, with the adapters that change its
// embeddings.
struct WantedVisual {
  Digest key;  // visual_key()
  std::shared_ptr<const media::VisualInput> input;
  std::vector<serving::AppliedAdapter> adapters;
};

// Small images are encoded together. Pieces alternate between the oldest run of the tower and the
// one with the least work left, so that large and small images do not delay each other. Not
// thread-safe: only the engine thread uses it.
class VisualEncoder {
 public:
  // cache_bytes: capacity of the cache of embeddings. launched: the model's queued work. The model,
  // the clock and `launched` must outlive this object.
  VisualEncoder(const models::Model& model, at::ScalarType dtype, size_t cache_bytes,
                const Clock& clock, models::PieceSize pieces, ops::LaunchedWork& launched);

  // Sets the inputs needed from now on, in order; keys may repeat. Drops everything no longer
  // needed at once, even runs in progress. The adapters of `wanted` must stay in memory until the
  // next call. If it throws std::bad_alloc, it must be called again.
  void request(std::span<const WantedVisual> wanted);
  // Runs pieces, at least one, until everything is encoded or `time` has passed on the device. On a
  // GPU one more piece may already be launched; it is waited for. Throws c10::Error or
  // DeviceLostError if the device fails, std::bad_alloc as request().
  void run(Duration time);

  // True if find() would have a result after request().
  bool has(const Digest& key) const { return results_.contains(key) || cache_.contains(key); }
  // The requested embeddings, or the error. Null: not encoded yet.
  const Result<at::Tensor>* find(const Digest& key) const;
  // Throws c10::Error if they are not available.
  const at::Tensor& get(const Digest& key) const;
  const TensorCache& cache() const { return cache_; }

  // Totals since the start.
  struct Work {
    uint64_t visuals = 0;  // encoded images, videos and parts of them
    double seconds = 0;
  };
  const Work& work() const { return work_; }

 private:
  // A run of the tower; not started while `encoding` is null.
  struct Tower {
    std::vector<WantedVisual> visuals;
    std::unique_ptr<models::Encoding> encoding;
    double total = 0;  // multiply-adds

    int64_t patches() const;
    // Remaining work, in patches.
    double left() const;
    bool has(const Digest& key) const;
  };

  void drop_unrequested();
  void add(const WantedVisual& visual);
  std::list<Tower>::iterator next();
  void advance(std::list<Tower>::iterator tower);
  void begin(Tower& tower);
  void finish(Tower& tower);

  const models::Model& model_;
  at::ScalarType dtype_;
  const Clock& clock_;
  const models::PieceSize pieces_;
  ops::LaunchedWork& launched_;
  TensorCache cache_;
  std::unordered_set<Digest> needed_;
  std::unordered_map<Digest, Result<at::Tensor>> results_;  // for needed_ keys
  std::list<Tower> towers_;                                 // oldest first
  bool oldest_first_ = true;
  Work work_;
};

}  // namespace valora
