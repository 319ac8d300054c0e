// Compiles clients' descriptions of answers: the first byte is the kind, the rest the text. A
// grammar that compiles within its budget is followed for some tokens.
#include <string>

#include "base/text/unicode.h"
#include "check.h"
#include "grammar/testing/byte_vocabulary.h"

namespace {

using namespace valora;
using namespace valora::grammar;

GrammarSpec spec_of(char kind, const std::string& text) {
  switch (kind) {
    case '1': return JsonSchemaSpec{text, true};
    case '2': return JsonSchemaSpec{text, false};
    case '3': return RegexSpec{text};
    case '4': return EbnfSpec{text};
    case '5': return StructuralTagSpec{text};
    default: return ChoiceSpec{{text, text + "x"}};
  }
}

// Takes the first allowed token from a position that changes with every step.
void walk(GrammarMatcher matcher) {
  for (int step = 0; step < 60 && !matcher.must_end(); ++step) {
    const auto mask = matcher.mask();
    if (!mask.ok()) {
      FUZZ_CHECK(mask.error().code != ErrorCode::kInternal);
      return;
    }
    int32_t token = 0;
    while (!allows(*mask, (token + 37 * step) % kTestVocabulary)) ++token;
    const Status taken = matcher.accept((token + 37 * step) % kTestVocabulary);
    if (!taken.ok()) {
      FUZZ_CHECK(taken.error().code != ErrorCode::kInternal);
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static GrammarCompiler compiler(byte_vocabulary(),
                                  {.cache_bytes = 1 << 20, .limits = {int64_t{128} << 20, 1}});
  if (size == 0) return 0;
  const auto compiled = compiler.compile(spec_of(
      static_cast<char>(data[0]), std::string(reinterpret_cast<const char*>(data) + 1, size - 1)));
  if (!compiled.ok()) {
    FUZZ_CHECK(compiled.error().code == ErrorCode::kInvalidArgument);
    FUZZ_CHECK(is_valid_utf8(compiled.error().message));
    return 0;
  }
  const auto matcher = GrammarMatcher::start(*compiled);
  FUZZ_CHECK(matcher.ok() && !matcher->must_end());
  walk(*matcher);
  return 0;
}
