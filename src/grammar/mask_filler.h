// Fills the masks of a step's answers on a thread of its own, while the model computes the logits
// that they are for.
#pragma once

#include <atomic>
#include <semaphore>
#include <vector>

#include "base/worker_pool.h"
#include "grammar/matcher.h"

namespace valora::grammar {

class MaskFiller {
 public:
  MaskFiller() = default;
  ~MaskFiller() { stop(); }
  MaskFiller(const MaskFiller&) = delete;
  MaskFiller& operator=(const MaskFiller&) = delete;

  // Fills them in this order. Until stop() they must live and no other thread may use them. An
  // error is kept by its matcher; without memory for the work nothing is filled ahead. After
  // stop() only.
  void begin(std::vector<GrammarMatcher*> matchers);
  // Waits for the mask in progress and begins no other; GrammarMatcher::mask() fills the rest.
  // Returns the number of masks filled since begin(); 0 without one.
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
