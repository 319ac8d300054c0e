// Fills the masks of a step's answers on its own thread, while the model computes the logits they
// apply to.
#pragma once

#include <atomic>
#include <semaphore>
#include <vector>

#include "base/threads/worker_pool.h"
#include "grammar/matcher.h"

namespace valora::grammar {

class MaskFiller {
 public:
  MaskFiller() = default;
  ~MaskFiller() { stop(); }
  MaskFiller(const MaskFiller&) = delete;
  MaskFiller& operator=(const MaskFiller&) = delete;

  // Fills the masks in this order. Until stop(), the matchers must stay alive and must not be used
  // by other threads. Each matcher keeps its own error; if there is no memory for the work, nothing
  // is filled ahead. Call only when stopped.
  void begin(std::vector<GrammarMatcher*> matchers);
  // Waits for the mask in progress and starts no other; GrammarMatcher::mask() fills the rest.
  // Returns the number of masks filled since begin(), or 0 if begin() was not called.
  size_t stop();

 private:
  void fill();

  std::vector<GrammarMatcher*> matchers_;
  size_t filled_ = 0;
  std::atomic<bool> stopped_ = false;
  bool running_ = false;
  std::binary_semaphore done_{0};
  WorkerPool thread_{1};
};

}  // namespace valora::grammar
