// Shared by the parsers of all styles: the tool names and the answer's deltas.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "server/tools/call_parser.h"

namespace valora::server {

class CallSink {
 public:
  explicit CallSink(const ToolRequest& tools) : parallel_(tools.parallel) {
    for (const Tool& tool : tools.callable) names_.insert(tool.name);
  }

  bool knows(const std::string& name) const { return names_.contains(name); }
  void content(std::string_view text) { delta_.content += text; }
  // Drops calls after the first unless the request allows parallel ones.
  void begin_call(const std::string& name) {
    ++index_;
    if (reported()) delta_.calls.push_back({.index = index_, .name = name});
  }
  // Adds arguments to the call begun last.
  void arguments(std::string_view text) {
    if (!reported() || text.empty()) return;
    if (delta_.calls.empty() || delta_.calls.back().index != index_)
      delta_.calls.push_back({.index = index_});
    delta_.calls.back().arguments += text;
  }
  AnswerDelta take() { return std::exchange(delta_, {}); }

 private:
  bool reported() const { return parallel_ || index_ == 0; }

  std::set<std::string> names_;
  bool parallel_;
  int index_ = -1;
  AnswerDelta delta_;
};

}  // namespace valora::server
