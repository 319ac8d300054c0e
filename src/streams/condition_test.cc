#include "streams/condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace valora::streams {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Condition condition(const char* json) {
  auto parsed = Condition::parse(Json::parse(json), "when");
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return std::move(*parsed);
}
bool holds(const char* json, const SkillAnswer& answer, const SkillAnswer* before = nullptr) {
  return condition(json).holds(answer, before);
}

TEST(Conditions, LabelsAreComparedWholeAndByScore) {
  EXPECT_TRUE(holds(R"({"label":"falls"})", {"falls"}));
  EXPECT_FALSE(holds(R"({"label":"falls"})", {"falls down"}));
  EXPECT_TRUE(holds(R"({"label":["a","b"]})", {"b"}));
  EXPECT_TRUE(holds(R"({"label":"a","min_score":0.6})", {"a", 0.6}));
  EXPECT_FALSE(holds(R"({"label":"a","min_score":0.6})", {"a", 0.59}));
}

TEST(Conditions, TextIsFoundInAnyCase) {
  EXPECT_TRUE(holds(R"({"contains":"Smoke"})", {"There is SMOKE."}));
  EXPECT_FALSE(holds(R"({"contains":"fire"})", {"There is smoke."}));
}

SkillAnswer boxes(std::initializer_list<AnswerBox> list) { return {.text = "", .boxes = list}; }

TEST(Conditions, BoxesAreCountedByLabelConfidenceAndZone) {
  const SkillAnswer answer = boxes({{"car", 0.1, 0.1, 0.3, 0.3, 0.9},
                                    {"car", 0.6, 0.6, 0.9, 0.9, 0.4},
                                    {"bus", 0.4, 0.4, 0.5, 0.5, {}}});
  EXPECT_TRUE(holds(R"({"boxes":{}})", answer));
  EXPECT_FALSE(holds(R"({"boxes":{}})", boxes({})));
  EXPECT_TRUE(holds(R"({"boxes":{"label":"car","min":2}})", answer));
  EXPECT_FALSE(holds(R"({"boxes":{"label":"car","min":3}})", answer));
  EXPECT_TRUE(holds(R"({"boxes":{"label":["car","bus"],"min":3}})", answer));
  EXPECT_TRUE(holds(R"({"boxes":{"max":0}})", boxes({})));
  EXPECT_FALSE(holds(R"({"boxes":{"label":"car","min":2,"min_confidence":0.5}})", answer));
  const char* left =
      R"({"boxes":{"label":"car","zone":[[0,0],[0.5,0],[0.5,1],[0,1]],"max":1,"min":1}})";
  EXPECT_TRUE(holds(left, answer));
  EXPECT_FALSE(holds(R"({"boxes":{"zone":[[0.9,0],[1,0],[1,0.1]]}})", answer));
  // The center decides: it is in the triangle's lower half, not in its box's upper one.
  EXPECT_FALSE(
      holds(R"({"boxes":{"zone":[[0,1],[1,1],[1,0]]}})", boxes({{"x", 0.1, 0.1, 0.3, 0.3, {}}})));
}

TEST(Conditions, ChangesNeedAnAnswerBefore) {
  const SkillAnswer a{"a"}, b{"b"};
  EXPECT_FALSE(holds(R"({"changes":true})", a));
  EXPECT_TRUE(holds(R"({"changes":true})", a, &b));
  EXPECT_FALSE(holds(R"({"changes":true})", a, &a));
}

TEST(Conditions, AreJoined) {
  EXPECT_FALSE(holds(R"({"not":{"label":"a"}})", {"a"}));
  EXPECT_TRUE(holds(R"({"all":[{"contains":"a"},{"not":{"contains":"b"}}]})", {"a"}));
  EXPECT_FALSE(holds(R"({"all":[{"contains":"a"},{"contains":"b"}]})", {"a"}));
  EXPECT_TRUE(holds(R"({"any":[{"contains":"b"},{"contains":"a"}]})", {"a"}));
}

TEST(Conditions, FaultsAreNamedWithTheirPath) {
  const auto param = [](const char* json) {
    const auto parsed = Condition::parse(Json::parse(json), "when");
    return parsed.ok() ? "no error" : parsed.error().param;
  };
  EXPECT_EQ(param("1"), "when");
  EXPECT_EQ(param("{}"), "when");
  EXPECT_EQ(param(R"({"label":[]})"), "when.label");
  EXPECT_EQ(param(R"({"label":"a","max":1})"), "when.max");
  EXPECT_EQ(param(R"({"label":"a","min_score":2})"), "when.min_score");
  EXPECT_EQ(param(R"({"boxes":{"min":-1}})"), "when.boxes.min");
  EXPECT_EQ(param(R"({"boxes":{"min":2,"max":1}})"), "when.boxes");
  EXPECT_EQ(param(R"({"boxes":{"zone":[[0,0],[1,1]]}})"), "when.boxes.zone");
  EXPECT_EQ(param(R"({"boxes":{"zone":[[0,0],[1,1],[7,0]]}})"), "when.boxes.zone");
  EXPECT_EQ(param(R"({"boxes":{"colour":1}})"), "when.boxes.colour");
  EXPECT_EQ(param(R"({"changes":false})"), "when.changes");
  EXPECT_EQ(param(R"({"all":[{"label":"a"},{"any":[]}]})"), "when.all[1].any");
  std::string deep = R"({"label":"a"})";
  for (int i = 0; i < 8; ++i) deep = R"({"not":)" + deep + "}";
  EXPECT_THAT(Condition::parse(Json::parse(deep), "when").error().message, HasSubstr("8 levels"));
}

TEST(EventMachines, BeginAndEndWithHysteresis) {
  EventMachine machine(2, 3);
  std::vector<Edge> edges;
  for (const bool holds : {true, false, true, true, true, false, false, true, false, false, false})
    edges.push_back(machine.step(holds));
  const Edge n = Edge::kNone;
  EXPECT_THAT(edges, ElementsAre(n, n, n, Edge::kStart, n, n, n, n, n, n, Edge::kEnd));
}

}  // namespace
}  // namespace valora::streams
