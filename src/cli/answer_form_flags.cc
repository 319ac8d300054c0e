#include "cli/answer_form_flags.h"

#include <utility>

#include "base/files/file.h"

namespace valora::cli {
namespace {

constexpr size_t kMaxSchemaFileBytes = size_t{1} << 20;

}  // namespace

void add_answer_form_flags(Command command, AnswerFormFlags& flags) {
  command.add_option("--json-schema", flags.schema_file,
                     "File with a JSON schema that the answer must match");
  command.add_option("--regex", flags.regex, "Regular expression that the whole answer must match");
  command.add_option("--choice", flags.choices, "The possible answers, as A,B,…; one is given")
      .delimiter(',');
}

Result<std::optional<AnswerConstraint>> constraint_of(const AnswerFormFlags& flags) {
  using Kind = AnswerConstraint::Kind;
  std::optional<AnswerConstraint> constraint;
  if (!flags.schema_file.empty() + !flags.regex.empty() + !flags.choices.empty() > 1)
    return invalid("--json-schema, --regex and --choice exclude one another");
  if (!flags.schema_file.empty()) {
    VALORA_TRY(schema, read_file(flags.schema_file, kMaxSchemaFileBytes));
    constraint = {Kind::kJsonSchema, std::move(schema), {}, true, "--json-schema"};
  }
  if (!flags.regex.empty()) constraint = {Kind::kRegex, flags.regex, {}, true, "--regex"};
  if (!flags.choices.empty()) constraint = {Kind::kChoice, {}, flags.choices, true, "--choice"};
  return constraint;
}

}  // namespace valora::cli
