// Finds tool calls in an answer while it is being generated.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tool_call_style.h"
#include "server/openai/tools.h"

namespace valora::server {

// An increment of a call: its name, which comes first, or the next characters of its arguments.
struct CallDelta {
  int index = 0;  // of the call within the answer
  std::optional<std::string> name = {};
  std::string arguments = {};
};

struct AnswerDelta {
  std::string content;
  std::vector<CallDelta> calls;
};

// Finds the tool calls in the text of one answer. A call of an unknown tool is content, and so is
// text that merely begins like a call. The result does not depend on how the text is split.
class CallParser {
 public:
  virtual ~CallParser() = default;
  virtual AnswerDelta feed(std::string_view text) = 0;
  // Ends the answer. An incomplete call stays as far as it was reported.
  virtual AnswerDelta finish() = 0;
};

// The style in which an answer to this request writes calls: the model's own or, if calls are
// forced and no grammar describes that style, the nearest one that has a grammar.
ToolCallStyle answer_style(ToolCallStyle model, const ToolRequest& tools);

// style: from answer_style().
std::unique_ptr<CallParser> make_call_parser(ToolCallStyle style, const ToolRequest& tools);

}  // namespace valora::server
