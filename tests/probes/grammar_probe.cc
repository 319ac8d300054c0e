// Follows texts through the grammars of JSON schemas, byte by byte. One JSON object per line on
// stdin, one answer per line on stdout:
//   {"schema": TEXT, "strict", "texts": […]} → {"accepted": [bool, …]}
// Errors: {"error": …}.
#include <iostream>

#include "base/json.h"
#include "grammar/compiler.h"
#include "grammar/matcher.h"

namespace valora::grammar {
namespace {

Vocabulary bytes() {
  Vocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.bytes.emplace_back(1, static_cast<char>(byte));
  vocabulary.size = 256;
  return vocabulary;
}

bool accepts(GrammarMatcher matcher, const std::string& text) {
  for (const char c : text)
    if (!matcher.accept(static_cast<unsigned char>(c)).ok()) return false;
  return matcher.may_end();
}

Json answer(GrammarCompiler& compiler, const Json& request) {
  const auto compiled = compiler.compile(
      JsonSchemaSpec{request.at("schema").get<std::string>(), request.at("strict").get<bool>()});
  if (!compiled.ok()) return {{"error", compiled.error().message}};
  const auto matcher = GrammarMatcher::start(*compiled);
  if (!matcher.ok()) return {{"error", matcher.error().message}};
  Json accepted = Json::array();
  for (const Json& text : request.at("texts"))
    accepted.push_back(accepts(*matcher, text.get<std::string>()));
  return {{"accepted", accepted}};
}

void run() {
  GrammarCompiler compiler(bytes());
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = parse_json(line, "the line");
    std::cout << (request.ok() ? answer(compiler, *request)
                               : Json{{"error", request.error().message}})
              << "\n";
  }
}

}  // namespace
}  // namespace valora::grammar

int main() { valora::grammar::run(); }
