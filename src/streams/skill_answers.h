// Reads the answers of one frame's skills, as a chat with "skills" gives them.
#pragma once

#include <map>
#include <string>

#include "base/json/json.h"
#include "base/result.h"
#include "streams/condition.h"

namespace valora::streams {

struct SkillResult {
  OrderedJson shown;    // {"content": …, "finish_reason": …} or {"error": …}
  bool failed = false;  // `answer` is empty then
  SkillAnswer answer;
};

// text: the body of a response with status 200 (docs/skills.md). width, height: of the frame, for
// boxes, which are in pixels. An answer that cannot be read counts as failed.
Result<std::map<std::string, SkillResult>> read_skill_answers(std::string_view text, int width,
                                                              int height);

}  // namespace valora::streams
