// The options that demand a form of answers, of several commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/constraint.h"
#include "base/result.h"
#include "cli/command.h"

namespace valora::cli {

struct AnswerFormFlags {
  std::string schema_file, regex;
  std::vector<std::string> choices;
};

// --json-schema, --regex and --choice.
void add_answer_form_flags(Command command, AnswerFormFlags& flags);
// None if no option is given. Reads the schema's file.
Result<std::optional<AnswerConstraint>> constraint_of(const AnswerFormFlags& flags);

}  // namespace valora::cli
