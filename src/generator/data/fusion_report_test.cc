#include "generator/data/fusion_report.h"

#include <gmock/gmock.h>

#include <cmath>

#include "generator/data/testing/example_report.h"

namespace valora::generator {
namespace {

using ::testing::HasSubstr;
using ::valora::testing::example_report;

std::string error_of(const Json& json) {
  const auto report = report_from_json(json, "report.json");
  return report.ok() ? "" : report.error().message;
}

TEST(FusionReport, RoundTrips) {
  FusionReport report = example_report(8);
  report.adapters[0].below_floor = {"digits"};
  const Json json = to_json(report);
  const auto read = report_from_json(*parse_json(json.dump(), "report.json"), "report.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(read->model, report.model);
  EXPECT_EQ(read->options, report.options);
  EXPECT_EQ(read->peak_bytes, report.peak_bytes);
  ASSERT_EQ(read->tasks.size(), 8);
  EXPECT_EQ(read->tasks[0].floor, report.tasks[0].floor);
  EXPECT_EQ(read->tasks[4].floor, std::nullopt);
  EXPECT_EQ(read->tasks[1].chance, std::nullopt);
  EXPECT_EQ(read->tasks[0].alone, report.tasks[0].alone);
  EXPECT_EQ(read->tasks[0].dropped, 12);
  ASSERT_EQ(read->steps.size(), report.steps.size());
  EXPECT_EQ(read->steps[3].failed, std::vector<std::string>{"digits"});
  EXPECT_FALSE(read->steps[3].kept);
  EXPECT_EQ(read->steps[3].accuracies, report.steps[3].accuracies);
  EXPECT_EQ(read->steps[3].samples_before, 900);
  EXPECT_EQ(read->steps[0].last_loss, 0.114);
  ASSERT_EQ(read->adapters.size(), 3);
  EXPECT_EQ(read->adapters[0].below_floor, std::vector<std::string>{"digits"});
  EXPECT_EQ(read->adapters[2].tasks, report.adapters[2].tasks);
  EXPECT_EQ(read->adapters[2].bytes, 3'145'728);
}

TEST(FusionReport, NonFiniteLossIsWrittenAsNull) {
  FusionReport report = example_report(1);
  report.steps[0].last_loss = NAN;
  report.steps[0].accuracies["digits"] = INFINITY;
  const Json json = to_json(report);
  EXPECT_TRUE(json["steps"][0]["last_loss"].is_null());
  const auto read = report_from_json(json, "report.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(std::isnan(read->steps[0].last_loss));
  EXPECT_TRUE(std::isnan(read->steps[0].accuracies.at("digits")));
}

TEST(FusionReport, ErrorsNameTheirPath) {
  const Json good = to_json(example_report(4));
  ASSERT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(Json::array()), "report.json: must be an object");
  const auto broken = [&](const char* pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    return error_of(json);
  };
  EXPECT_EQ(broken("/model", 7), "report.json: \"model\" must be a string");
  EXPECT_EQ(broken("/tasks", 7), "report.json: \"tasks\" must be a list");
  EXPECT_EQ(broken("/tasks/2", 7), "report.json: tasks[2]: must be an object");
  EXPECT_EQ(broken("/tasks/2/floor", "x"), "report.json: tasks[2]: \"floor\" must be a number");
  EXPECT_EQ(broken("/tasks/2/train_samples", 1.5),
            "report.json: tasks[2]: \"train_samples\" must be an integer");
  EXPECT_EQ(broken("/steps/1/failed", "digits"),
            "report.json: steps[1]: \"failed\" must be a list");
  EXPECT_EQ(broken("/steps/1/failed", {1}), "report.json: steps[1]: \"failed\" must hold strings");
  EXPECT_EQ(broken("/steps/1/kept", "yes"),
            "report.json: steps[1]: \"kept\" must be true or false");
  EXPECT_EQ(broken("/steps/1/accuracies", {1}),
            "report.json: steps[1]: \"accuracies\" must be an object");
  EXPECT_THAT(broken("/steps/1/accuracies", {{"digits", "x"}}),
              HasSubstr("steps[1]: \"accuracies\" must be a number"));
  EXPECT_THAT(broken("/steps/1/seconds", "x"), HasSubstr("steps[1]: \"seconds\" must be a number"));
  EXPECT_EQ(broken("/adapters/0/bytes", -1),
            "report.json: adapters[0]: \"bytes\" must not be negative");
  EXPECT_EQ(broken("/peak_bytes", -1), "report.json: \"peak_bytes\" must not be negative");
  for (const char* list : {"tasks", "steps", "adapters"})
    for (const auto& [key, value] : good[list][0].items()) {
      Json json = good;
      json[list][0].erase(key);
      const bool optional = key == "floor" || key == "chance" || key == "alone";
      EXPECT_EQ(
          error_of(json),
          optional ? "" : std::string("report.json: ") + list + "[0]: \"" + key + "\" is missing");
    }
}

}  // namespace
}  // namespace valora::generator
