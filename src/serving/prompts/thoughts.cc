#include "serving/prompts/thoughts.h"

#include <algorithm>
#include <string_view>

namespace valora::serving {
namespace {

std::optional<int32_t> token_of(std::string_view mark, const text::Tokenizer& tokenizer) {
  return tokenizer.token_to_id(std::string(mark));
}

// The number of the mark's bytes that must precede a token with these bytes for it to complete the
// mark and go on; nullopt: it does not, or has all of the mark in it.
std::optional<size_t> overrun_of(std::string_view bytes, std::string_view mark) {
  for (size_t taken = std::min(mark.size(), bytes.size()); taken > 0; --taken)
    if (taken < bytes.size() && bytes.starts_with(mark.substr(mark.size() - taken)))
      return mark.size() - taken;
  return std::nullopt;
}

std::vector<std::vector<int32_t>> overruns_of(std::string_view mark,
                                              const text::Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> out(mark.size());
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string& bytes = tokenizer.token_bytes(id);
    // A token with the mark in its middle completes it from anywhere.
    if (const size_t at = bytes.find(mark); at != bytes.npos && at + mark.size() < bytes.size()) {
      for (auto& list : out) list.push_back(id);
    } else if (const auto before = overrun_of(bytes, mark)) {
      out[*before].push_back(id);
    }
  }
  return out;
}

const text::ThoughtMarks* marks_of(ReasoningParser parser, const text::ChatFormat& format) {
  switch (parser) {
    case ReasoningParser::kAuto: return format.thought_marks();
    case ReasoningParser::kNone: return nullptr;
    case ReasoningParser::kMistral: return &text::kThinkBrackets;
    case ReasoningParser::kQwen3:
    case ReasoningParser::kDeepseekR1: break;
  }
  return &text::kThinkTags;
}

}  // namespace

std::optional<ThoughtSyntax> find_thought_syntax(ReasoningParser parser,
                                                 const text::ChatFormat& format,
                                                 const text::Tokenizer& tokenizer) {
  const text::ThoughtMarks* marks = marks_of(parser, format);
  if (!marks) return std::nullopt;
  ThoughtSyntax syntax;
  syntax.marks = marks;
  if (parser == ReasoningParser::kDeepseekR1) syntax.undecided = text::ThoughtPlace::kThought;
  syntax.begin_token = token_of(marks->begin, tokenizer);
  syntax.end_token = token_of(marks->end, tokenizer);
  syntax.end_tokens = syntax.end_token ? std::vector{*syntax.end_token}
                                       : tokenizer.encode(marks->end, /*add_special_tokens=*/false);
  syntax.overruns = overruns_of(marks->end, tokenizer);
  return syntax;
}

bool is_left_out(int32_t token, const ThoughtSyntax* syntax, const text::Tokenizer& tokenizer,
                 bool skip_special_tokens) {
  return skip_special_tokens && tokenizer.is_special(token) && !(syntax && syntax->is_mark(token));
}

bool includes_thought(const AnswerConstraint& form, const text::ThoughtMarks& marks) {
  using Kind = AnswerConstraint::Kind;
  const auto has_end = [&](const std::string& text) { return text.find(marks.end) != text.npos; };
  switch (form.kind) {
    case Kind::kLabels:
    case Kind::kBoxes: return true;
    case Kind::kStructuralTag:
    case Kind::kRegex:
    case Kind::kEbnf: return has_end(form.text);
    case Kind::kChoice: return std::ranges::any_of(form.choices, has_end);
    case Kind::kJsonObject:
    case Kind::kJsonSchema: return false;
  }
  return false;
}

}  // namespace valora::serving
