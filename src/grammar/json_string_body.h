// Included only by the patched JSON schema converter of xgrammar (cmake/xgrammar.cmake).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grammar_builder.h"
#include "grammar_functor.h"

namespace xgrammar {

// Converts the grammar of a text to the grammar of its JSON string encoding, without the quotation
// marks. Literals are escaped. Character classes keep only characters that need no escape; a class
// with none of these becomes the escapes of its characters.
class JSONStringBody : public GrammarFunctor<int32_t, Grammar> {
 private:
  using Ranges = std::vector<GrammarBuilder::CharacterClassElement>;

  static bool is_plain(int32_t character) {
    return character >= 0x20 && character != '"' && character != '\\';
  }

  static std::string escaped(int32_t character) {
    static const std::pair<int32_t, const char*> kShort[] = {
        {'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
        {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};
    for (const auto& [known, text] : kShort)
      if (character == known) return text;
    if (is_plain(character)) return std::string(1, static_cast<char>(character));
    const char* digits = "0123456789abcdef";
    return std::string("\\u00") + digits[character / 16] + digits[character % 16];
  }

  int32_t VisitByteString(const GrammarExpr& expr) override {
    std::string text;
    for (const int32_t byte : expr) text += escaped(byte & 0xFF);
    return builder_->AddByteString(text);
  }

  // The class without characters that need escapes; a negated class excludes these in addition.
  static Ranges plain_of(const GrammarExpr& expr) {
    Ranges ranges;
    for (int i = 1; i + 1 < expr.size(); i += 2) {
      if (expr[0] != 0) {
        ranges.push_back({expr[i], expr[i + 1]});
        continue;
      }
      for (const auto& [low, high] :
           {std::pair<int32_t, int32_t>{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x10FFFF}})
        if (std::max(low, expr[i]) <= std::min(high, expr[i + 1]))
          ranges.push_back({std::max(low, expr[i]), std::min(high, expr[i + 1])});
    }
    if (expr[0] != 0) ranges.insert(ranges.end(), {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
    return ranges;
  }

  int32_t VisitCharacterClass(const GrammarExpr& expr) override {
    const Ranges plain = plain_of(expr);
    if (!plain.empty()) return builder_->AddCharacterClass(plain, expr[0] != 0);
    std::vector<int32_t> choices;
    for (int i = 1; i + 1 < expr.size(); i += 2)
      for (int32_t c = expr[i]; c <= expr[i + 1]; ++c)
        choices.push_back(builder_->AddSequence({builder_->AddByteString(escaped(c))}));
    return builder_->AddRuleRef(
        builder_->AddRuleWithHint("escaped", builder_->AddChoices(choices)));
  }

  int32_t VisitCharacterClassStar(const GrammarExpr& expr) override {
    const Ranges plain = plain_of(expr);
    return plain.empty() ? builder_->AddEmptyStr()
                         : builder_->AddCharacterClassStar(plain, expr[0] != 0);
  }
};

}  // namespace xgrammar
