#include "text/post_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json template_json(const Json& single) {
  return {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", Json::array()},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1, 2}}, {"tokens", {"<s>", "<s>"}}}}}}};
}
const Json kStart = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
const Json kSequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};

TEST(PostProcessor, AddsTemplateTokensAroundText) {
  const auto around = PostProcessor::read(template_json({kStart, kSequence, kStart}), "p", 2);
  ASSERT_TRUE(around.ok()) << around.error().message;
  EXPECT_THAT(around->prefix, ElementsAre(1, 2));
  EXPECT_THAT(around->suffix, ElementsAre(1, 2));
}

TEST(PostProcessor, LaterProcessorsWrapEarlierOnes) {
  Json outer = template_json({kStart, kSequence});
  outer["special_tokens"]["<s>"]["ids"] = {7};
  const Json json = {{"type", "Sequence"},
                     {"processors", {template_json({kStart, kSequence}), outer}}};
  EXPECT_THAT(PostProcessor::read(json, "p", 9)->prefix, ElementsAre(7, 1, 2));
}

TEST(PostProcessor, RefusesWrongTemplates) {
  const auto refusal = [](const Json& single, int32_t max_id) {
    return PostProcessor::read(template_json(single), "p", max_id).error().message;
  };
  EXPECT_THAT(refusal({kStart, kSequence}, 1), HasSubstr("outside the vocabulary"));
  EXPECT_THAT(refusal(Json::array({kStart}), 9), HasSubstr("sequence A once"));
  EXPECT_THAT(refusal({kSequence, kSequence}, 9), HasSubstr("sequence A once"));
  EXPECT_THAT(refusal({{{"SpecialToken", {{"id", "<x>"}}}}, kSequence}, 9),
              HasSubstr("has no \"<x>\""));
  EXPECT_THAT(refusal(Json::array({3}), 9), HasSubstr("malformed"));
}

}  // namespace
}  // namespace valora::text
