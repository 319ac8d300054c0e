// Encodes the images and videos of requests, in pieces that fit between steps (models/encoding.h).
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
#include "engine/tensor_cache.h"
#include "models/model.h"
#include "ops/launched_work.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora {

// An image or video that a request needs, with the adapters that change its embeddings.
struct WantedVisual {
  Digest key;  // of its pixels and adapters
  std::shared_ptr<const media::VisualInput> input;
  std::vector<serving::AppliedAdapter> adapters;
};

// Small images are encoded together. Of the time for pieces, half goes to the run of the tower that
// is the oldest, half to the one with the least left: a large image does not hold up small ones,
// nor they it. Not thread-safe: only the engine thread uses it.
class VisualEncoder {
 public:
  // cache_bytes: capacity of the cache of embeddings. launched: what the model launches. The model,
  // the clock and `launched` must outlive it.
  VisualEncoder(const models::Model& model, at::ScalarType dtype, size_t cache_bytes,
                const Clock& clock, models::PieceSize pieces, ops::LaunchedWork& launched);

  // What the requests need from now on, in order; several may name one key. What nobody needs any
  // more is dropped at once, also a run under way. The adapters of what is wanted must be in memory
  // until the next call. Throws std::bad_alloc; it is then called again.
  void request(std::span<const WantedVisual> wanted);
  // Runs pieces until nothing is missing, or until so much time has passed on the device: at least
  // one. On a GPU one more may have been launched, whose end it waits for, too. Throws c10::Error
  // or LostDevice if the device fails, std::bad_alloc as request().
  void run(Duration time);

  // Whether find() has a result once it is wanted.
  bool has(const Digest& key) const { return results_.contains(key) || cache_.contains(key); }
  // The embeddings of what is wanted, or why there are none. Null: they are not made yet.
  const Result<at::Tensor>* find(const Digest& key) const;
  // Throws c10::Error if there are none.
  const at::Tensor& get(const Digest& key) const;
  const TensorCache& cache() const { return cache_; }

  // Since the start.
  struct Work {
    uint64_t visuals = 0;  // encoded images and videos
    double seconds = 0;
  };
  const Work& work() const { return work_; }

 private:
  // A run of the tower, not begun if `encoding` is null.
  struct Tower {
    std::vector<WantedVisual> visuals;
    std::unique_ptr<models::Encoding> encoding;
    double total = 0;  // multiply-adds

    int64_t patches() const;
    // What is left to do, as patches.
    double left() const;
    bool has(const Digest& key) const;
  };

  void drop_unneeded();
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
  std::unordered_map<Digest, Result<at::Tensor>> results_;  // of what is needed
  std::list<Tower> towers_;                                 // the oldest first
  bool oldest_next_ = true;
  Work work_;
};

}  // namespace valora
