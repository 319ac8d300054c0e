#include "grammar/mask_filler.h"

#include <utility>

#include "base/log/log.h"

namespace valora::grammar {

void MaskFiller::begin(std::vector<GrammarMatcher*> matchers) {
  if (matchers.empty()) return;
  matchers_ = std::move(matchers);
  filled_ = 0;
  stopped_ = false;
  try {
    thread_.post([this] { fill(); });
    running_ = true;
  } catch (const std::exception& e) {
    spdlog::debug("masks are not filled ahead: {}", e.what());
  }
}

void MaskFiller::fill() {
  for (GrammarMatcher* matcher : matchers_) {
    if (stopped_) break;
    try {
      (void)matcher->mask();
      ++filled_;
    } catch (const std::exception& e) {  // not the grammar's fault: whoever needs the mask retries
      spdlog::debug("a mask was not filled ahead: {}", e.what());
    }
  }
  done_.release();
}

size_t MaskFiller::stop() {
  if (!running_) return 0;
  stopped_ = true;
  done_.acquire();
  running_ = false;
  return filled_;
}

}  // namespace valora::grammar
