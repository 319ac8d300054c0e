// The constraint that a request with tools puts on its answer.
#pragma once

#include <optional>

#include "api/constraint.h"
#include "base/tool_call_style.h"
#include "server/openai/tools.h"

namespace valora::server {

// For kRequired: only calls. For kAuto: text in which every call that begins must be of a known
// tool with arguments that match its schema; only in the Hermes style, whose calls begin with a
// tag. Otherwise nullopt. style: from answer_style(). A schema that no grammar can express is
// replaced by any object, unless the tool is strict.
std::optional<AnswerConstraint> call_constraint(ToolCallStyle style, const ToolRequest& tools);

}  // namespace valora::server
