#include <gmock/gmock.h>

#include <cmath>

#include "generator/data/testing/example_report.h"
#include "report/testing/markup.h"

namespace valora::generator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::valora::testing::count;
using ::valora::testing::example_report;
using ::valora::testing::expect_well_formed;

TEST(FusionPage, ShowsEveryTaskStepAndAdapter) {
  for (const int tasks : {1, 2, 8, 30}) {
    const FusionReport report = example_report(tasks);
    const std::string html = to_html(report);
    expect_well_formed(html);
    for (const ReportedTask& task : report.tasks)
      EXPECT_THAT(html, HasSubstr("</i>" + task.name + "</th>"));
    EXPECT_EQ(count(html, "<svg "), report.adapters.size());
    EXPECT_EQ(count(html, "<tr"),
              3 + report.tasks.size() + report.adapters.size() + report.steps.size());
    EXPECT_THAT(html, Not(HasSubstr("nan")));
  }
}

TEST(FusionPage, LoadsNoExternalResources) {
  const std::string html = to_html(example_report(8));
  for (const char* words : {"http", "src=", "href=", "<script", "@import", "url("})
    EXPECT_THAT(html, Not(HasSubstr(words))) << words;
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

TEST(FusionPage, SummarisesTheRun) {
  FusionReport report = example_report(8);
  report.adapters[0].accuracies["digits"] = 0.5;
  const std::string html = to_html(report);
  EXPECT_THAT(html, HasSubstr("<b>8</b><span>tasks</span>"));
  EXPECT_THAT(html, HasSubstr("<b>3</b><span>adapters</span>"));
  EXPECT_THAT(html, HasSubstr("<b>6 of 7</b><span>floors held</span>"));
  EXPECT_THAT(html, HasSubstr("<b>10</b><span>steps, 2 rolled back</span>"));
  EXPECT_THAT(html, HasSubstr("<b>1 h 15 min</b>"));
  EXPECT_THAT(html, HasSubstr("<b>50.0</b> <span class=\"bad\">below</span></td><td "
                              "class=\"n\">89.0</td><td class=\"n\">+40.0</td>"));
}

TEST(FusionPage, ShowsRollBacks) {
  const FusionReport report = example_report(8);
  const std::string html = to_html(report);
  EXPECT_EQ(count(html, "<rect class=\"undone\""), 2);
  EXPECT_EQ(count(html, ">rolled back</text>"), 2);
  EXPECT_EQ(count(html, "<tr class=\"undone\">"), 2);
  EXPECT_EQ(count(html, "<circle class=\"failed\""), 2);
  EXPECT_EQ(count(html, "<line class=\"tried "), 3 + 3)
      << "from each task that the adapters held before";
  EXPECT_EQ(count(html, "<path class=\"point hollow "), 4 + 4);
  EXPECT_THAT(html, HasSubstr("digits after step 4, rolled back: 78.6 %, below its floor"));
  EXPECT_EQ(count(html, "<line class=\"floor "), 9 + 2)
      << "of steps whose task has one, and of tasks that failed";
}

TEST(FusionPage, EscapesAllText) {
  FusionReport report = example_report(4);
  const std::string evil = "<b onload=\"x\">&'\x01\xFF";
  report.model = report.options["order"] = evil;
  ReportedTask& task = report.tasks[0];
  task.type = task.metric = evil;
  FusionStep& undone = report.steps[3];
  undone.why = evil;
  for (ReportedAdapter& adapter : report.adapters) adapter.path = evil;
  const auto rename = [&](std::string& name) {
    if (name == "digits") name = evil;
  };
  rename(task.name);
  for (FusionStep& step : report.steps) {
    rename(step.task);
    for (std::string& name : step.failed) rename(name);
    if (auto node = step.accuracies.extract("digits"))
      node.key() = evil, step.accuracies.insert(std::move(node));
    if (step.adapter == "adapter-1") step.adapter = evil;
  }
  ReportedAdapter& adapter = report.adapters[0];
  adapter.name = evil;
  rename(adapter.tasks[0]);
  adapter.below_floor = {evil};
  auto node = adapter.accuracies.extract("digits");
  node.key() = evil;
  adapter.accuracies.insert(std::move(node));

  const std::string html = to_html(report);
  expect_well_formed(html);
  EXPECT_THAT(html, Not(HasSubstr("<b onload")));
  EXPECT_THAT(html, Not(HasSubstr("\xFF")));
  EXPECT_THAT(html, Not(HasSubstr("\x01")));
  EXPECT_THAT(html, HasSubstr("&lt;b onload=&quot;x&quot;&gt;&amp;&#39;\uFFFD\uFFFD"));
}

TEST(FusionPage, HandlesEmptyReportsAndNonFiniteNumbers) {
  expect_well_formed(to_html({}));
  FusionReport report = example_report(4);
  for (FusionStep& step : report.steps) {
    step.first_loss = step.seconds = NAN;
    for (auto& [task, accuracy] : step.accuracies) accuracy = NAN;
  }
  report.tasks[0].base = INFINITY;
  report.adapters[0].accuracies.clear();
  report.steps[1].task = "unheard-of";
  const std::string html = to_html(report);
  expect_well_formed(html);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace valora::generator
