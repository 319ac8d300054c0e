#include <string>

#include "server/openai/json_text.h"
#include "server/tools/call_sink.h"
#include "server/tools/parsers.h"

namespace valora::server {
namespace {

// Reports a call once it is complete. Text is held back until the first call in the list is known
// to be one.
class PythonicParser final : public CallParser {
 public:
  explicit PythonicParser(const ToolRequest& tools) : sink_(tools) {}

  AnswerDelta feed(std::string_view text) override {
    for (const char c : text) take(c);
    return sink_.take();
  }

  AnswerDelta finish() override {
    if (place_ == Place::kStart || place_ == Place::kCall) give_up();
    return sink_.take();
  }

 private:
  enum class Place { kStart, kCall, kBetween, kText, kDropped };

  void take(char c) {
    const bool space = kSpace.find(c) != std::string_view::npos;
    switch (place_) {
      case Place::kStart:
        held_ += c;
        if (c == '[') place_ = Place::kCall;
        if (c != '[' && !space) give_up();
        return;
      case Place::kCall: held_ += c; return in_call(c);
      case Place::kBetween:
        if (c == ',') place_ = Place::kCall;
        if (c == ']') place_ = Place::kText;
        if (c != ',' && c != ']' && !space) place_ = Place::kDropped;
        return;
      case Place::kText: return sink_.content(std::string_view(&c, 1));
      case Place::kDropped: return;
    }
  }

  // Counts brackets outside strings; the call ends where its own bracket closes.
  void in_call(char c) {
    call_ += c;
    if (quote_ != '\0') {
      if (escape_)
        escape_ = false;
      else if (c == '\\')
        escape_ = true;
      else if (c == quote_)
        quote_ = '\0';
      return;
    }
    if (c == '\'' || c == '"') quote_ = c;
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c != ')' && c != ']' && c != '}') return;
    if (--depth_ > 0) return;
    if (depth_ < 0) return give_up();
    const auto call = parse_python_call(call_);
    call_.clear();
    if (!call || !sink_.knows(call->name)) return give_up();
    sink_.begin_call(call->name);
    sink_.arguments(to_text(call->arguments));
    called_ = true;
    held_.clear();
    place_ = Place::kBetween;
  }

  // Not a call after all: the text is content, unless calls were reported before.
  void give_up() {
    if (!called_) sink_.content(held_);
    held_.clear();
    place_ = called_ ? Place::kDropped : Place::kText;
  }

  CallSink sink_;
  Place place_ = Place::kStart;
  std::string held_, call_;  // text since the last reported call; the current call
  int depth_ = 0;
  char quote_ = '\0';
  bool escape_ = false, called_ = false;
};

}  // namespace

std::unique_ptr<CallParser> make_pythonic_parser(const ToolRequest& tools) {
  return std::make_unique<PythonicParser>(tools);
}

}  // namespace valora::server
