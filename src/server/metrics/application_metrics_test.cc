#include "server/metrics/application_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/metrics/metrics.h"
#include "server/testing/echo_script.h"

namespace valora::server {
namespace {

using testing::echo_options;
using ::testing::HasSubstr;
using ::testing::Not;
using valora::testing::FakeEngine;

class ApplicationMetricsTest : public ::testing::Test {
 protected:
  std::string requests(const std::string& application, const std::string& outcome, int count) {
    return R"(valora:application_requests_total{application=")" + application +
           R"(",engine="0",model_name="m",outcome=")" + outcome + "\"} " + std::to_string(count) +
           "\n";
  }
  std::string targets(const std::string& target, const std::string& met, int count) {
    return R"(valora:application_target_total{application="a",engine="0",met=")" + met +
           R"(",model_name="m",target=")" + target + "\"} " + std::to_string(count) + "\n";
  }
  FakeEngine engine_{echo_options()};
  Metrics metrics_{engine_, "m", 4};
};

TEST_F(ApplicationMetricsTest, SeriesExistFromStartForConfiguredTargets) {
  metrics_.of_application({.name = "a", .tpot = 0.1});
  metrics_.of_application({.name = "b"});
  const std::string text = metrics_.text();
  for (const char* outcome : {"ok", "error", "refused"})
    for (const char* name : {"a", "b"}) EXPECT_THAT(text, HasSubstr(requests(name, outcome, 0)));
  EXPECT_THAT(text, HasSubstr(targets("tpot", "yes", 0)));
  EXPECT_THAT(text, HasSubstr(targets("tpot", "no", 0)));
  EXPECT_THAT(text, Not(HasSubstr("target=\"ttft\"")));
  EXPECT_THAT(text, Not(HasSubstr(R"(application_target_total{application="b")")));
}

TEST_F(ApplicationMetricsTest, ComparesEachTargetWithItsOwnLatency) {
  auto application = metrics_.of_application({.name = "a", .ttft = 0.5, .tpot = 0.1, .e2e = 10});
  application.answered({.ttft = 0.5, .tpot = 0.1, .e2e = 10});
  application.answered({.ttft = 0.51, .tpot = 0, .e2e = 2});
  application.answered({.ttft = 0.1, .tpot = 0.11, .e2e = 10.1});
  application.answered({.ttft = 0.1, .tpot = 0.2, .e2e = 3});
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr(requests("a", "ok", 4)));
  EXPECT_THAT(text, HasSubstr(targets("ttft", "yes", 3)));
  EXPECT_THAT(text, HasSubstr(targets("ttft", "no", 1)));
  EXPECT_THAT(text, HasSubstr(targets("tpot", "yes", 2)));
  EXPECT_THAT(text, HasSubstr(targets("tpot", "no", 2)));
  EXPECT_THAT(text, HasSubstr(targets("e2e", "yes", 3)));
  EXPECT_THAT(text, HasSubstr(targets("e2e", "no", 1)));
  EXPECT_EQ(application.attainment().ttft, 0.75);
  EXPECT_EQ(application.attainment().tpot, 0.5);
}

TEST_F(ApplicationMetricsTest, FailuresMissEveryTargetAndRefusalsDoNotCount) {
  auto application = metrics_.of_application({.name = "a", .ttft = 0.5, .e2e = 10});
  EXPECT_EQ(application.attainment().ttft, std::nullopt);
  application.refused();
  EXPECT_EQ(application.attainment().ttft, std::nullopt);
  application.failed();
  const std::string text = metrics_.text();
  EXPECT_THAT(text, HasSubstr(requests("a", "refused", 1)));
  EXPECT_THAT(text, HasSubstr(requests("a", "error", 1)));
  EXPECT_THAT(text, HasSubstr(requests("a", "ok", 0)));
  EXPECT_THAT(text, HasSubstr(targets("ttft", "no", 1)));
  EXPECT_THAT(text, HasSubstr(targets("e2e", "no", 1)));
  EXPECT_EQ(application.attainment().ttft, 0.0);
  EXPECT_EQ(application.attainment().tpot, std::nullopt);
}

}  // namespace
}  // namespace valora::server
