#include "serving/output/box_grammar.h"

#include <fmt/format.h>

#include "base/json/json.h"
#include "grammar/spec.h"

namespace valora::serving {
namespace {

// The decimal numbers from 0 to `most`, as EBNF alternatives.
std::string numbers_to(int most) {
  const std::string digits = std::to_string(most);
  std::string out = "\"0\"";
  for (size_t length = 1; length < digits.size(); ++length)
    out += fmt::format(" | [1-9] [0-9]{{{}}}", length - 1);
  for (size_t i = 0; i < digits.size(); ++i) {
    const char low = i == 0 ? '1' : '0';
    if (digits[i] == low) continue;
    const size_t rest = digits.size() - 1 - i;
    out += " |";
    if (i > 0) out += ' ' + grammar::ebnf_literal(digits.substr(0, i));
    out += fmt::format(" [{}-{}] [0-9]{{{}}}", low, static_cast<char>(digits[i] - 1), rest);
  }
  return out + " | " + grammar::ebnf_literal(digits);
}

std::string label_rule(const Labels& labels, const char* any) {
  std::string rule;
  for (const std::string& label : labels)
    rule += (rule.empty() ? "" : " | ") + grammar::ebnf_literal(label);
  return "label ::= " + (rule.empty() ? any : rule) + "\n";
}

std::string text_grammar(const BoxNotation& notation, const Labels& labels) {
  const std::string number = "number ::= " + numbers_to(notation.scale) + "\n";
  if (!notation.labels)
    return "root ::= \"none\" | box+\n"
           "box ::= \"[\" number \",\" number \",\" number \",\" number \"]\"\n" +
           number;
  return "root ::= \"none\" | thing+\n"
         "thing ::= \"<ref>\" label \"</ref>\" box+\n"
         "box ::= \"<box>(\" number \",\" number \"),(\" number \",\" number \")</box>\"\n" +
         label_rule(labels, "[^<>\\n]{1,64}") + number;
}

// A label as it stands between the quotes of JSON.
std::string inside_quotes(const std::string& label) {
  const std::string text = Json(label).dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

std::string json_grammar(const BoxNotation& notation, const Labels& labels) {
  std::vector<std::string> written;
  for (const std::string& label : labels) written.push_back(inside_quotes(label));
  // The size of the picture is not known here; corners outside are cut.
  const std::string number =
      notation.scale > 0 ? numbers_to(notation.scale) : "\"0\" | [1-9] [0-9]{0,4}";
  return "root ::= list | \"```json\\n\" list \"\\n```\"\n"
         "list ::= \"[]\" | \"[\" space thing (\",\" space thing)* space \"]\"\n"
         "space ::= [ \\n\\t]{0,5}\n"
         "thing ::= \"{\\\"bbox_2d\\\": [\" number \", \" number \", \" number \", \" number \"]"
         ", \\\"label\\\": \\\"\" label \"\\\"}\"\n" +
         label_rule(Labels(std::move(written)), "[^\"\\\\\\x00-\\x1f]{1,64}") +
         "number ::= " + number + "\n";
}

}  // namespace

std::string box_grammar(const BoxNotation& notation, const Labels& labels) {
  return notation.style == BoxStyle::kJson ? json_grammar(notation, labels)
                                           : text_grammar(notation, labels);
}

}  // namespace valora::serving
