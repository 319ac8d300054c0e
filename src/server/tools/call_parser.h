// Finds the calls of tools in an answer while it is written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tool_call_style.h"
#include "server/openai/tools.h"

namespace valora::server {

// More of a call: its name, which comes first, or the next characters of its arguments.
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
// text that only begins like a call. The result does not depend on how the text is cut into pieces.
class CallParser {
 public:
  virtual ~CallParser() = default;
  virtual AnswerDelta feed(std::string_view text) = 0;
  // The answer has ended. A call that is not complete stays as far as it was reported.
  virtual AnswerDelta finish() = 0;
};

// How an answer to this request writes its calls: in the model's style, or, if calls are forced in
// a style that no grammar here describes, in the nearest one.
ToolCallStyle answer_style(ToolCallStyle model, const ToolRequest& tools);

// style: from answer_style().
std::unique_ptr<CallParser> make_call_parser(ToolCallStyle style, const ToolRequest& tools);

}  // namespace valora::server
