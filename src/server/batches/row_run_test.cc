#include "server/batches/row_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <thread>

#include "server/openai/errors.h"

namespace valora::server {
namespace {

using ::testing::Each;
using ::testing::SizeIs;

// Answers rows as the test says, and counts what is asked.
class RunTest : public ::testing::Test {
 protected:
  RowRunParts parts(size_t count) {
    return {.count = count,
            .row = [](size_t i) -> Result<Row> {
              return Row{std::to_string(i), {.body = std::to_string(i)}};
            },
            .write = [this](const std::vector<AnsweredRow>& rows) -> Status {
              for (const AnsweredRow& row : rows) written_[row.name].push_back(row.response.status);
              return {};
            },
            .ask =
                [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
                  ++asked_[request.body];
                  {
                    const std::lock_guard lock(mutex_);
                    most_ = std::max(most_, ++now_);
                  }
                  thread_.queue()->post([this, body = request.body, exchange] {
                    {
                      const std::lock_guard lock(mutex_);
                      --now_;
                    }
                    answer_(body, exchange);
                  });
                },
            .most_in_flight = [] { return 4; }};
  }

  std::map<std::string, std::vector<int>> written_;
  std::map<std::string, int> asked_;
  std::mutex mutex_;
  int now_ = 0, most_ = 0;
  using Answer = std::function<void(const std::string&, const std::shared_ptr<Exchange>&)>;
  Answer answer_ = [](const std::string& body, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.body = body});
  };
  RowThread thread_;  // last: its work uses the rest
};

TEST_F(RunTest, EachRowIsAskedAndWrittenOnceWithABoundedNumberAtOnce) {
  RowRun run(parts(50), thread_.queue());
  ASSERT_TRUE(run.run().ok());
  EXPECT_THAT(written_, SizeIs(50));
  for (const auto& [name, statuses] : written_) EXPECT_THAT(statuses, SizeIs(1)) << name;
  for (const auto& [name, times] : asked_) EXPECT_EQ(times, 1) << name;
  EXPECT_LE(most_, 4);
}

TEST_F(RunTest, RowsOverALimitAreAskedAgainUntilTheyAreAnswered) {
  std::map<std::string, int> refusals;
  answer_ = [&](const std::string& body, const std::shared_ptr<Exchange>& exchange) {
    if (refusals[body]++ < 3)
      exchange->respond(error_response(body < "5" ? 429 : 503, "later"));
    else
      exchange->respond({.body = body});
  };
  RowRun run(parts(8), thread_.queue());
  ASSERT_TRUE(run.run().ok());
  EXPECT_THAT(written_, SizeIs(8));
  for (const auto& [name, statuses] : written_) EXPECT_THAT(statuses, Each(200)) << name;
}

TEST_F(RunTest, OtherErrorsAreAnswers) {
  answer_ = [](const std::string&, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond(error_response(400, "no"));
  };
  RowRun run(parts(3), thread_.queue());
  ASSERT_TRUE(run.run().ok());
  for (const auto& [name, statuses] : written_) EXPECT_THAT(statuses, Each(400)) << name;
  for (const auto& [name, times] : asked_) EXPECT_EQ(times, 1) << name;
}

TEST_F(RunTest, LeavingCancelsWhatIsInFlightAndWritesWhatIsAnswered) {
  std::atomic<int> left = 0;
  RowRun* running = nullptr;
  answer_ = [&](const std::string& body, const std::shared_ptr<Exchange>& exchange) {
    if (body < "3") return exchange->respond({.body = body});
    exchange->on_disconnect([&left, exchange] { ++left; });  // as answers do, it holds the exchange
    if (body == "6") running->leave();
  };
  RowRun run(parts(100), thread_.queue());
  running = &run;
  ASSERT_TRUE(run.run().ok());
  EXPECT_THAT(written_, SizeIs(3));
  std::promise<void> ran;  // the work behind which the engine's requests are cancelled
  thread_.queue()->post([&] { ran.set_value(); });
  ran.get_future().wait();
  EXPECT_EQ(left, 4);
}

TEST_F(RunTest, DeadlineEndsTheRun) {
  std::vector<std::shared_ptr<Exchange>> held;
  RowRunParts given = parts(3);
  given.ask = [&](HttpRequest, std::shared_ptr<Exchange> exchange) { held.push_back(exchange); };
  given.deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(30);
  RowRun run(std::move(given), thread_.queue());
  ASSERT_TRUE(run.run().ok());
  EXPECT_TRUE(written_.empty());
}

TEST_F(RunTest, FailedWriteEndsTheRun) {
  RowRunParts given = parts(50);
  given.write = [](const std::vector<AnsweredRow>&) -> Status { return invalid("full"); };
  RowRun run(std::move(given), thread_.queue());
  EXPECT_EQ(run.run().error().message, "full");
  EXPECT_LT(asked_.size(), 50u);
}

TEST_F(RunTest, LostExchangesAreAskedAgain) {
  std::map<std::string, int> losses;
  RowRunParts given = parts(3);
  given.ask = [&](HttpRequest request, std::shared_ptr<Exchange> exchange) {
    if (losses[request.body]++ > 0) exchange->respond({.body = "x"});
  };
  RowRun run(std::move(given), thread_.queue());
  ASSERT_TRUE(run.run().ok());
  EXPECT_THAT(written_, SizeIs(3));
}

}  // namespace
}  // namespace valora::server
