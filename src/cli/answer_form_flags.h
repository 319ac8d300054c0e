// Options that constrain the form of answers, shared by several commands.
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

// Adds --json-schema, --regex and --choice.
void add_answer_form_flags(Command command, AnswerFormFlags& flags);
// Absent if no option is given. Reads the schema file.
Result<std::optional<AnswerConstraint>> constraint_of(const AnswerFormFlags& flags);

}  // namespace valora::cli
