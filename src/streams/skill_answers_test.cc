#include "streams/skill_answers.h"

#include <gtest/gtest.h>

namespace valora::streams {
namespace {

TEST(SkillAnswers, AreReadByTheirForm) {
  const auto answers = read_skill_answers(R"({"skills":{
    "label":{"choices":[{"message":{"content":"dog"},"finish_reason":"stop",
      "logprobs":{"content":[{"token":"dog","logprob":-0.5}]}}]},
    "json label":{"choices":[{"message":{"content":"{\"label\": \"dog\"}"}}]},
    "boxes":{"choices":[{"message":{"content":"[{\"label\":\"car\",\"box\":[10,20,30,60],\"confidence\":0.5}]"}}]},
    "sized":{"choices":[{"message":{"content":"{\"size\":[1,1],\"boxes\":[{\"label\":null,\"box\":[0,0,100,200]}]}"}}]},
    "error":{"error":{"message":"no"}},
    "text":{"choices":[{"message":{"content":"[not a box"}}]}}})",
                                          100, 200);
  ASSERT_TRUE(answers.ok()) << answers.error().message;
  EXPECT_EQ(answers->at("label").answer.text, "dog");
  EXPECT_NEAR(*answers->at("label").answer.score, 0.6065, 1e-4);
  EXPECT_EQ(answers->at("label").shown["finish_reason"], "stop");
  EXPECT_EQ(answers->at("json label").answer.text, "dog");
  const auto& boxes = answers->at("boxes").answer.boxes;
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].label, "car");
  EXPECT_DOUBLE_EQ(boxes[0].x0, 0.1);
  EXPECT_DOUBLE_EQ(boxes[0].y1, 0.3);
  EXPECT_EQ(boxes[0].confidence, 0.5);
  EXPECT_DOUBLE_EQ(answers->at("sized").answer.boxes.at(0).y1, 1);
  EXPECT_TRUE(answers->at("error").failed);
  EXPECT_EQ(answers->at("error").shown["error"]["message"], "no");
  EXPECT_FALSE(answers->at("text").failed);
  EXPECT_TRUE(answers->at("text").answer.boxes.empty());
}

TEST(SkillAnswers, NeedSkills) {
  EXPECT_FALSE(read_skill_answers("{}", 1, 1).ok());
  EXPECT_FALSE(read_skill_answers("no", 1, 1).ok());
}

}  // namespace
}  // namespace valora::streams
