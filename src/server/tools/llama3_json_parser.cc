#include <algorithm>
#include <string>

#include "server/tools/json_call.h"
#include "server/tools/parsers.h"

namespace valora::server {
namespace {

constexpr std::string_view kTag = "<|python_tag|>";  // special, in texts that keep such tokens

class Llama3JsonParser final : public CallParser {
 public:
  explicit Llama3JsonParser(const ToolRequest& tools) : sink_(tools) {}

  AnswerDelta feed(std::string_view text) override {
    held_ += text;
    while (step()) {
    }
    return sink_.take();
  }

  AnswerDelta finish() override {
    if (place_ == Place::kCall && !call_.reported()) sink_.content(before_ + call_.text());
    if (place_ == Place::kStart) sink_.content(held_);
    held_.clear();
    return sink_.take();
  }

 private:
  enum class Place { kStart, kCall, kBetween, kText };

  bool step() {
    switch (place_) {
      case Place::kStart: return read_start();
      case Place::kCall: return read_call();
      case Place::kBetween: return read_between();
      case Place::kText:
        sink_.content(held_);
        held_.clear();
        return false;
    }
    return false;
  }

  bool read_start() {
    const size_t first = held_.find_first_not_of(kSpace);
    if (first == std::string::npos) return false;
    const std::string_view rest = std::string_view(held_).substr(first);
    if (rest.size() < kTag.size() && kTag.starts_with(rest)) return false;
    size_t begin = first;
    if (rest.starts_with(kTag)) begin = held_.find_first_not_of(kSpace, first + kTag.size());
    if (begin == std::string::npos) return false;
    place_ = held_[begin] == '{' ? Place::kCall : Place::kText;
    if (place_ == Place::kText) return true;
    before_ = held_.substr(0, begin);
    held_.erase(0, begin);
    return true;
  }

  bool read_call() {
    if (held_.empty()) return false;
    held_.erase(0, call_.feed(held_, sink_));
    if (call_.progress() == JsonCall::Progress::kReading) return false;
    const bool done = call_.progress() == JsonCall::Progress::kDone;
    if (!done && !call_.reported()) sink_.content(before_ + call_.text());
    place_ = done ? Place::kBetween : Place::kText;
    before_.clear();
    return true;
  }

  bool read_between() {
    const size_t next = held_.find_first_not_of(" \t\r\n;,");
    if (next == std::string::npos) {
      before_ += std::exchange(held_, {});
      return false;
    }
    before_ += held_.substr(0, next);
    held_.erase(0, next);
    place_ = held_[0] == '{' ? Place::kCall : Place::kText;
    call_ = JsonCall();
    return true;
  }

  CallSink sink_;
  Place place_ = Place::kStart;
  std::string held_, before_;  // undecided text; text before the current call
  JsonCall call_;
};

}  // namespace

std::unique_ptr<CallParser> make_llama3_json_parser(const ToolRequest& tools) {
  return std::make_unique<Llama3JsonParser>(tools);
}

}  // namespace valora::server
