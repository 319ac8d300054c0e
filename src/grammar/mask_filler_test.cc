#include "grammar/mask_filler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

std::vector<uint32_t> words(GrammarMatcher& matcher) {
  const auto mask = matcher.mask();
  EXPECT_TRUE(mask.ok());
  return mask.ok() ? std::vector<uint32_t>(mask->begin(), mask->end()) : std::vector<uint32_t>();
}

int32_t any_allowed(GrammarMatcher& matcher, std::mt19937& random) {
  std::vector<int32_t> ids;
  const auto mask = words(matcher);
  for (int32_t id = 0; id < kTestVocabulary; ++id)
    if (allows(mask, id)) ids.push_back(id);
  return ids.at(random() % ids.size());
}

// Makes sure all masks are filled ahead, however slow the machine is.
void fill_all(MaskFiller& filler, const std::vector<GrammarMatcher*>& wanted) {
  size_t filled = 0;
  for (auto wait = std::chrono::milliseconds(1); filled < wanted.size() && wait.count() < 10000;
       wait *= 2) {
    filler.begin(wanted);
    std::this_thread::sleep_for(wait);
    filled = filler.stop();
  }
  ASSERT_EQ(filled, wanted.size());
}

TEST(MaskFiller, MasksDoNotDependOnTheFillingThread) {
  std::mt19937 random(3);
  std::vector<GrammarMatcher> ahead;
  for (int i = 0; i < 8; ++i)
    ahead.push_back(start(JsonSchemaSpec{R"({"type": "array", "items": {"type": "string"}})"}));
  std::vector<GrammarMatcher> later = ahead;
  MaskFiller filler;
  for (int step = 0; step < 40; ++step) {
    std::vector<GrammarMatcher*> wanted;
    for (size_t i = 0; i < ahead.size(); ++i) {
      if (ahead[i].must_end()) continue;
      const int32_t token = any_allowed(later[i], random);
      ASSERT_TRUE(ahead[i].accept(token).ok());
      ASSERT_TRUE(later[i].accept(token).ok());
      wanted.push_back(&ahead[i]);
    }
    if (step % 2 == 0) {
      ASSERT_NO_FATAL_FAILURE(fill_all(filler, wanted));
    } else {  // fills some masks, or none
      filler.begin(wanted);
      EXPECT_LE(filler.stop(), wanted.size());
    }
    for (size_t i = 0; i < ahead.size(); ++i) EXPECT_EQ(words(ahead[i]), words(later[i]));
  }
}

TEST(MaskFiller, DeadEndStaysAnError) {
  Vocabulary letters;
  letters.bytes = {"a", "b"};
  letters.size = 2;
  GrammarCompiler narrow(letters);
  const auto compiled = narrow.compile(RegexSpec{"ab1"});
  ASSERT_TRUE(compiled.ok());
  GrammarMatcher matcher = *GrammarMatcher::start(*compiled);
  ASSERT_TRUE(matcher.accept(0).ok());
  ASSERT_TRUE(matcher.accept(1).ok());
  MaskFiller filler;
  ASSERT_NO_FATAL_FAILURE(fill_all(filler, {&matcher}));
  EXPECT_EQ(matcher.mask().error().code, ErrorCode::kUnprocessable);
}

TEST(MaskFiller, EmptyBatchDoesNoWork) {
  MaskFiller filler;
  EXPECT_EQ(filler.stop(), 0);
  filler.begin({});
  EXPECT_EQ(filler.stop(), 0);
}

}  // namespace
}  // namespace valora::grammar
