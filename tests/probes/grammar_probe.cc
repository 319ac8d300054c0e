// Follows texts through the grammars of JSON schemas, byte by byte. One JSON object per line on
// stdin, one answer per line on stdout:
//   {"schema": TEXT, "strict", "texts": […]} → {"accepted": [bool, …]}
//   {"schema": TEXT, "strict", "walks": N} → {"answers": […]}: N random complete answers at most
// Errors: {"error": …}.
#include <iostream>
#include <random>

#include "base/json/json.h"
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

// A random answer; empty if none is complete after many bytes.
std::string walk(GrammarMatcher matcher, std::mt19937& random) {
  std::string text;
  while (text.size() < 400) {
    if (matcher.may_end() && (matcher.must_end() || random() % 3 == 0)) return text;
    const auto mask = matcher.mask();
    std::vector<int32_t> allowed;
    for (int32_t byte = 0; mask.ok() && byte < 256; ++byte)
      if (allows(*mask, byte)) allowed.push_back(byte);
    if (allowed.empty()) return {};
    const int32_t byte = allowed[random() % allowed.size()];
    if (!matcher.accept(byte).ok()) return {};
    text += static_cast<char>(byte);
  }
  return {};
}

Json walks(const GrammarMatcher& matcher, int count) {
  std::mt19937 random(1);
  Json answers = Json::array();
  for (int i = 0; i < count; ++i)
    if (std::string text = walk(matcher, random); !text.empty()) answers.push_back(std::move(text));
  return {{"answers", answers}};
}

Json answer(GrammarCompiler& compiler, const Json& request) {
  const auto compiled = compiler.compile(
      JsonSchemaSpec{request.at("schema").get<std::string>(), request.at("strict").get<bool>()});
  if (!compiled.ok()) return {{"error", compiled.error().message}};
  const auto matcher = GrammarMatcher::start(*compiled);
  if (!matcher.ok()) return {{"error", matcher.error().message}};
  if (request.contains("walks")) return walks(*matcher, request["walks"].get<int>());
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
