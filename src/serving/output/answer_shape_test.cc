#include "serving/output/answer_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "grammar/matcher.h"
#include "grammar/testing/byte_vocabulary.h"

namespace valora::serving {
namespace {

using Kind = AnswerConstraint::Kind;
using ::testing::HasSubstr;

const AnswerForm kThings{{"coin", "post \"card\""}, BoxNotation{100, true}};
const AnswerForm kPlain{{}, BoxNotation{1000, false}};

// True if the model may write this text for boxes.
bool may_write(const AnswerForm& form, const std::string& text) {
  grammar::GrammarCompiler compiler(grammar::byte_vocabulary());
  const auto constraint = constraint_on_text({Kind::kBoxes, {}, {}, true, "f"}, form);
  EXPECT_EQ(constraint.param, "f");
  const auto compiled = compiler.compile(grammar::EbnfSpec{constraint.text});
  if (!compiled.ok()) ADD_FAILURE() << compiled.error().message;
  return compiled.ok() && grammar::matches(*grammar::GrammarMatcher::start(*compiled), text);
}

// The JSON of `text` pushed in parts of `size` bytes.
std::string shaped(AnswerShape& shape, const std::string& text, size_t size) {
  std::string out;
  for (size_t i = 0; i < text.size(); i += size) out += shape.push(text.substr(i, size));
  return out + shape.finish();
}

TEST(AnswerShape, GrammarAcceptsModelsBoxNotation) {
  EXPECT_TRUE(may_write(kThings, "none"));
  EXPECT_TRUE(may_write(kThings, "<ref>coin</ref><box>(0,5),(99,100)</box><box>(1,2),(3,4)</box>"));
  EXPECT_TRUE(may_write(kThings, "<ref>post \"card\"</ref><box>(10,20),(30,40)</box>"));
  for (const char* wrong : {"", "<ref>coin</ref>", "<ref>cat</ref><box>(0,5),(9,9)</box>",
                            "<box>(0,5),(9,9)</box>", "<ref>coin</ref><box>(0,5),(9,101)</box>",
                            "<ref>coin</ref><box>(00,5),(9,9)</box>", "[1,2,3,4]"})
    EXPECT_FALSE(may_write(kThings, wrong)) << wrong;
  EXPECT_TRUE(may_write(kPlain, "[0,12,345,1000][1,2,3,4]"));
  EXPECT_FALSE(may_write(kPlain, "[0,12,345,1001]"));
  const AnswerForm free{{}, BoxNotation{100, true}};
  EXPECT_TRUE(may_write(free, "<ref>any thing</ref><box>(0,5),(9,9)</box>"));
  for (const int scale : {1, 7, 10, 255, 1000}) {
    const AnswerForm form{{}, BoxNotation{scale, false}};
    for (int number = 0; number < 1300; number += number < 300 ? 1 : 37)
      EXPECT_EQ(may_write(form, "[0,0,0," + std::to_string(number) + "]"), number <= scale)
          << number << " of " << scale;
  }
}

TEST(AnswerShape, BoxesBecomeJsonInPixels) {
  const std::string text =
      "<ref>coin</ref><box>(0,5),(99,100)</box><box>(7,7),(7,9)</box><box>(1,2),(3,4)</box>"
      "<ref>post \"card\"</ref><box>(10,20),(30,40)</box>";
  for (const size_t size : {1, 3, 1000}) {
    const auto shape = box_shape(*kThings.boxes, {{640, 333}, {}});
    const auto boxes = parse_json(shaped(*shape, text, size), "the answer");
    ASSERT_TRUE(boxes.ok());
    EXPECT_EQ(*boxes, Json::parse(R"([{"label": "coin", "box": [0.0, 16.6, 633.6, 333.0]},
                                      {"label": "coin", "box": [6.4, 6.7, 19.2, 13.3]},
                                      {"label": "post \"card\"", "box": [64.0, 66.6, 192.0, 133.2]}])"));
  }
  const auto plain = box_shape(*kPlain.boxes, {{100, 200}, {}});
  EXPECT_EQ(plain->push("[10,20,300,4"), "");
  EXPECT_EQ(plain->push("00]["), R"([{"label": null, "box": [1.0, 4.0, 30.0, 80.0]})");
  EXPECT_EQ(plain->push("1,2,3"), "");
  EXPECT_EQ(plain->finish(), "]") << "what was cut is left out";
  EXPECT_EQ(shaped(*box_shape(*kThings.boxes, {{9, 9}, {}}), "none", 2), "[]");
}

Json json_of(const std::string& text) { return Json::parse(text); }

TEST(AnswerShape, BoxesAreWrittenInOtherForms) {
  using Boxes = ShapeOutput::Boxes;
  const std::string text = "<ref>coin</ref><box>(10,20),(30,60)</box>";
  const auto in_form = [&](Boxes boxes) {
    return json_of(shaped(*box_shape(*kThings.boxes, {{200, 100}, {}}, {.boxes = boxes}), text, 3));
  };
  EXPECT_EQ(in_form(Boxes::kBbox2d),
            json_of(R"([{"label": "coin", "bbox_2d": [20, 20, 60, 60]}])"));
  EXPECT_EQ(in_form(Boxes::kCoco), json_of(R"([{"label": "coin", "bbox": [20, 20, 40, 40]}])"));
  EXPECT_EQ(in_form(Boxes::kYolo),
            json_of(R"([{"label": "coin", "xywhn": [0.2, 0.4, 0.2, 0.4]}])"));
  const ShapeOutput sizes{.sizes = true};
  const auto around = [&](const std::string& answer) {
    return json_of(shaped(*box_shape(*kThings.boxes, {{200, 100}, {56, 28}}, sizes), answer, 3));
  };
  EXPECT_EQ(around(text), json_of(R"({"size": [200, 100], "seen": [56, 28],
                                      "boxes": [{"label": "coin", "box": [20, 20, 60, 60]}]})"));
  EXPECT_EQ(around(""), json_of(R"({"size": [200, 100], "seen": [56, 28], "boxes": []})"));
}

TEST(AnswerShape, ConfidencesAreThoseOfTheTokensOfTheLabelAndOfTheBox) {
  const ShapeOutput output{.confidence = true};
  using Pieces = std::vector<std::pair<const char*, double>>;
  const auto of = [&](const BoxNotation& notation, const Pieces& pieces) {
    const auto shape = box_shape(notation, {{100, 100}, {100, 100}}, output);
    std::string out;
    for (const auto& [text, probability] : pieces) out += shape->push(text, std::log(probability));
    return json_of(out + shape->finish());
  };
  const Json marked = of(*kThings.boxes, {{"<ref>", 0.1},
                                          {"co", 0.5},
                                          {"in", 0.5},
                                          {"</ref><box>(", 1},
                                          {"1", 0.9},
                                          {"0", 0.4},
                                          {",20),(30", 1},
                                          {",40)</box>", 1},
                                          {"<ref>", 1},
                                          {"post \"card\"", 0.8},
                                          {"</ref><box>(", 1},
                                          {"1,2),(3,4", 0.7},
                                          {")</box>", 0.2}});
  EXPECT_NEAR(marked[0]["label_confidence"], 0.25, 1e-3);
  EXPECT_NEAR(marked[0]["confidence"], std::pow(0.9 * 0.4, 0.25), 1e-3);
  EXPECT_NEAR(marked[1]["label_confidence"], 0.8, 1e-3);
  EXPECT_NEAR(marked[1]["confidence"], 0.7, 1e-3);
  const BoxNotation json{.scale = 100, .style = BoxStyle::kJson};
  const Json boxes = of(json, {{R"([{"bbox_2d": [)", 0.3},
                               {"10", 0.5},
                               {", ", 0.9},
                               {"20, 30, 40", 0.5},
                               {R"(], "label": ")", 0.2},
                               {"a car", 0.6},
                               {R"("})", 0.9},
                               {"]", 0.9}});
  EXPECT_NEAR(boxes[0]["label_confidence"], 0.6, 1e-3);
  EXPECT_NEAR(boxes[0]["confidence"], 0.5, 1e-3);
  const auto label = label_shape(kThings, output);
  label->push("co", std::log(0.5));
  label->push("in", std::log(0.5));
  EXPECT_EQ(label->finish(), R"({"label": "coin", "confidence": 0.25})");
}

const AnswerForm kSeenPixels{{}, BoxNotation{.scale = 0, .style = BoxStyle::kJson}};

Json boxes_of(const BoxNotation& notation, const PictureSizes& sizes, const std::string& text) {
  Json first;
  for (const size_t size : {1, 4, 1000}) {
    const auto shape = box_shape(notation, sizes);
    auto boxes = parse_json(shaped(*shape, text, size), "the answer");
    EXPECT_TRUE(boxes.ok()) << text;
    if (first.is_null()) first = *boxes;
    EXPECT_EQ(*boxes, first) << size;
  }
  return first;
}

TEST(AnswerShape, GrammarAcceptsBoxesInJson) {
  const std::string one = R"({"bbox_2d": [10, 20, 300, 40], "label": "a car"})";
  for (const std::string& text :
       {std::string("[]"), "[" + one + "]", "[\n\t" + one + ",\n\t" + one + "\n]",
        "```json\n[\n\t" + one + "\n]\n```"})
    EXPECT_TRUE(may_write(kSeenPixels, text)) << text;
  for (const std::string& text :
       {std::string(), one, "[" + one, "```json\n[" + one + "]", "[" + one + one + "]",
        "Here: [" + one + "]", std::string(R"([{"bbox_2d": [1, 02, 3, 4], "label": "a"}])"),
        std::string(R"([{"bbox_2d": [1, 2, 3, 4], "label": "a)") + '\x01' + "\"}]"})
    EXPECT_FALSE(may_write(kSeenPixels, text)) << text;
  const AnswerForm named{{"post \"card\"", "coin"}, BoxNotation{.style = BoxStyle::kJson}};
  EXPECT_TRUE(may_write(named, R"([{"bbox_2d": [0, 0, 1000, 9], "label": "post \"card\""}])"));
  EXPECT_FALSE(may_write(named, R"([{"bbox_2d": [0, 0, 1001, 9], "label": "coin"}])"));
  EXPECT_FALSE(may_write(named, R"([{"bbox_2d": [0, 0, 10, 9], "label": "car"}])"));
}

TEST(AnswerShape, LabelsOfARequestReplaceThoseOfTheTask) {
  const auto grammar = [](std::vector<std::string> choices) {
    return constraint_on_text({Kind::kBoxes, {}, std::move(choices), true, "f"}, kThings).text;
  };
  EXPECT_THAT(grammar({}), HasSubstr("coin"));
  EXPECT_THAT(grammar({"car"}),
              ::testing::AllOf(HasSubstr("car"), ::testing::Not(HasSubstr("coin"))));
}

TEST(AnswerShape, BoxesInPixelsOfTheSeenPictureBecomePixelsOfTheSentOne) {
  const PictureSizes sizes{.sent = {1000, 500}, .seen = {280, 140}};
  const std::string text =
      "```json\n[\n\t{\"bbox_2d\": [28, 14, 140, 70], \"label\": \"a } \\\"b\\\"\"},\n"
      "\t{\"bbox_2d\": [140, 70, 28, 14], \"label\": \"swapped\"},\n"
      "\t{\"bbox_2d\": [0, 0, 300, 14], \"label\": \"beyond\"},\n"
      "\t{\"bbox_2d\": [290, 0, 300, 14], \"label\": \"outside\"},\n"
      "\t{\"bbox_2d\": [0, 0, 3";
  EXPECT_EQ(boxes_of(*kSeenPixels.boxes, sizes, text),
            Json::parse(R"([{"label": "a } \"b\"", "box": [100, 50, 500, 250]},
                            {"label": "swapped", "box": [100, 50, 500, 250]},
                            {"label": "beyond", "box": [0, 0, 1000, 50], "clipped": true}])"));
  EXPECT_EQ(boxes_of(*kSeenPixels.boxes, sizes, "[]"), Json::array());
}

TEST(AnswerShape, MarksOfTokenizersAreRead) {
  const BoxNotation notation{.scale = 1000, .style = BoxStyle::kMarks};
  const PictureSizes sizes{.sent = {200, 100}, .seen = {}};
  const Json wanted = Json::parse(R"([{"label": "the 2 cats", "box": [20, 20, 100, 40]},
                                      {"label": "the 2 cats", "box": [0, 10, 2, 20]}])");
  for (const char* text :
       {"Here are 2: <|object_ref_start|>the 2 "
        "cats<|object_ref_end|><|box_start|>(100,200),(500,400)"
        "<|box_end|><|box_start|>(0,100),(10,200)<|box_end|>.",
        "<ref>the 2 cats</ref><box>(100,200),(500,400)</box><box>(0,100),(10,200)</box>",
        "<ref>the 2 cats</ref><box>[[100, 200, 500, 400], [0, 100, 10, 200]]</box> 1, 2, 3, 4"})
    EXPECT_EQ(boxes_of(notation, sizes, text), wanted) << text;
  for (const char* none : {"I see [1, 2, 3, 4] nothing.", "<ref>cat</ref>", "<box>(1,2),(3,4)",
                           "<box>(1,2),(3)</box>", "<box>(99999999999999999999,2),(3,2)</box>"})
    EXPECT_EQ(boxes_of(notation, sizes, none), Json::array()) << none;
}

TEST(AnswerShape, RefusesLabelsThatCannotBeDemanded) {
  const MediaRef picture{MediaRef::Kind::kImage, "data:"};
  const ChatPrompt prompt{{{"user", {picture}}}, {}, {}};
  const auto refusal = [&](const BoxNotation& notation) {
    const Status status =
        check_shape({Kind::kBoxes, {}, {"car"}, true, "response_format"}, {{}, notation}, prompt);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(refusal({.style = BoxStyle::kJson}), "");
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({.style = BoxStyle::kMarks}), HasSubstr("cannot be held to a list"));
  EXPECT_THAT(refusal({.labels = false}), HasSubstr("no labels"));
}

TEST(AnswerShape, LabelsBecomeJson) {
  const AnswerForm form{{"rain", "a \"b\""}, {}};
  const auto text = constraint_on_text({Kind::kLabels, {}, {}, true, "f"}, form);
  EXPECT_EQ(text.kind, Kind::kChoice);
  EXPECT_EQ(text.choices, form.labels);
  EXPECT_EQ(shaped(*label_shape(form), "a \"b\"", 2), R"({"label": "a \"b\""})");
  EXPECT_EQ(shaped(*label_shape(form), "rai", 2), R"({"label": null})");
  EXPECT_EQ(labels_json({"a", "b"}), R"({"labels": ["a", "b"]})");
  EXPECT_EQ(labels_json({}), R"({"labels": []})");
}

TEST(AnswerShape, RefusesUnknownLabelsAndBoxes) {
  const auto refusal = [](Kind kind, const AnswerForm& form, const Prompt& prompt) {
    const Status status = check_shape({kind, {}, {}, true, "response_format"}, form, prompt);
    if (status.ok()) return std::string();
    EXPECT_EQ(status.error().param, "response_format");
    return status.error().message;
  };
  const MediaRef picture{MediaRef::Kind::kImage, "data:"}, video{MediaRef::Kind::kVideo, "data:"};
  const auto chat = [](std::vector<ContentPart> parts) {
    return ChatPrompt{{{"user", std::move(parts)}}, {}, {}};
  };
  EXPECT_THAT(refusal(Kind::kLabels, {}, "x"), HasSubstr("no labels"));
  EXPECT_EQ(refusal(Kind::kLabels, kThings, "x"), "");
  EXPECT_THAT(refusal(Kind::kBoxes, {{"a"}, {}}, chat({picture})),
              HasSubstr("how this model writes boxes"));
  EXPECT_EQ(refusal(Kind::kBoxes, kThings, chat({picture, "x"})), "");
  for (const Prompt& prompt : {Prompt("x"), Prompt(chat({"x"})), Prompt(chat({picture, picture})),
                               Prompt(chat({picture, video}))})
    EXPECT_THAT(refusal(Kind::kBoxes, kThings, prompt), HasSubstr("one picture"));
  EXPECT_EQ(refusal(Kind::kRegex, {}, "x"), "");
}

}  // namespace
}  // namespace valora::serving
