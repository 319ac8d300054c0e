#include <algorithm>
#include <string>

#include "server/tools/json_call.h"
#include "server/tools/parsers.h"

namespace valora::server {
namespace {

constexpr std::string_view kOpenTag = "<tool_call>", kCloseTag = "</tool_call>";
constexpr size_t kMaxHeldSpace = 256;  // held back before a tag

// Start of the white space before `tag`, which belongs to the syntax of a call.
size_t space_before(std::string_view text, size_t tag) {
  const size_t last = text.substr(0, tag).find_last_not_of(kSpace);
  const size_t first = last == std::string_view::npos ? 0 : last + 1;
  return std::max(first, tag - std::min(tag, kMaxHeldSpace));
}

// Start of a partial tag at the end of the text, including the white space before it; the text's
// size if there is none.
size_t held_from(std::string_view text) {
  size_t length = std::min(text.size(), kOpenTag.size() - 1);
  while (length > 0 && !kOpenTag.starts_with(text.substr(text.size() - length))) --length;
  return space_before(text, text.size() - length);
}

class HermesParser final : public CallParser {
 public:
  explicit HermesParser(const ToolRequest& tools) : sink_(tools) {}

  AnswerDelta feed(std::string_view text) override {
    held_ += text;
    while (step()) {
    }
    return sink_.take();
  }

  AnswerDelta finish() override {
    if (place_ == Place::kCall && !call_.reported())
      sink_.content(before_ + std::string(kOpenTag) + space_ + call_.text());
    if (place_ == Place::kText && !(after_call_ && held_.find_first_not_of(kSpace) == held_.npos))
      sink_.content(held_);
    held_.clear();
    return sink_.take();
  }

 private:
  enum class Place { kText, kCall, kAfterCall };

  // Consumes one part. False if it needs more text.
  bool step() {
    switch (place_) {
      case Place::kText: return read_text();
      case Place::kCall: return read_call();
      case Place::kAfterCall: return read_close();
    }
    return false;
  }

  bool read_text() {
    const size_t open = held_.find(kOpenTag);
    if (open == std::string::npos) {
      write_text(held_from(held_));
      return false;
    }
    const size_t end = space_before(held_, open);
    write_text(end);
    before_ = held_.substr(0, open - end);
    held_.erase(0, open - end + kOpenTag.size());
    call_ = JsonCall();
    space_.clear();
    place_ = Place::kCall;
    return true;
  }

  void write_text(size_t size) {
    if (size == 0) return;
    sink_.content(std::string_view(held_).substr(0, size));
    held_.erase(0, size);
    after_call_ = false;
  }

  bool read_call() {
    if (call_.text().empty()) {
      const size_t first = std::min(held_.find_first_not_of(kSpace), held_.size());
      space_ += held_.substr(0, first);
      held_.erase(0, first);
    }
    if (held_.empty()) return false;
    held_.erase(0, call_.feed(held_, sink_));
    if (call_.progress() == JsonCall::Progress::kReading) return false;
    if (call_.progress() == JsonCall::Progress::kDone || call_.reported()) {
      place_ = Place::kAfterCall;
    } else {
      sink_.content(before_ + std::string(kOpenTag) + space_ + call_.text());
      place_ = Place::kText;
      after_call_ = false;
    }
    return true;
  }

  // Drops the rest of a call that was reported before it turned out to be malformed.
  bool read_close() {
    if (call_.progress() == JsonCall::Progress::kFailed) {
      const size_t close = held_.find(kCloseTag);
      held_.erase(
          0, close != held_.npos ? close : held_.size() - std::min(held_.size(), kCloseTag.size()));
      if (close == held_.npos) return false;
    }
    held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
    const bool closed = held_.starts_with(kCloseTag);
    if (!closed && kCloseTag.starts_with(held_)) return false;
    if (closed) held_.erase(0, kCloseTag.size());
    place_ = Place::kText;
    after_call_ = true;
    return true;
  }

  CallSink sink_;
  Place place_ = Place::kText;
  std::string held_;            // undecided text
  std::string before_, space_;  // white space before the current call's tag, and after it
  bool after_call_ = false;     // only white space has followed the last call
  JsonCall call_;
};

}  // namespace

std::unique_ptr<CallParser> make_hermes_parser(const ToolRequest& tools) {
  return std::make_unique<HermesParser>(tools);
}

}  // namespace valora::server
