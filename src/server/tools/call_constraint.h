// The form that a request with tools demands of its answer.
#pragma once

#include <optional>

#include "api/constraint.h"
#include "base/tool_call_style.h"
#include "server/openai/tools.h"

namespace valora::server {

// Choice kRequired: nothing but calls. Choice kAuto: text in which every call that is begun is one
// of a tool with arguments of its schema; only in the Hermes style, whose calls have a mark at
// which they begin. None otherwise. style: from answer_style(). A schema that no grammar expresses
// is replaced by any object, unless the tool is strict.
std::optional<AnswerConstraint> call_constraint(ToolCallStyle style, const ToolRequest& tools);

}  // namespace valora::server
