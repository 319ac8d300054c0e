// Clients, workers, the engine thread, the mover and the watch all at once. Under the thread
// sanitizer, this reveals data shared without a lock.
#include <gmock/gmock.h>

#include <random>
#include <thread>

#include "base/text/base64.h"
#include "media/testing/pictures.h"
#include "serving/testing/fake_engine_fixture.h"

namespace valora::serving {
namespace {

using namespace testing;
using ::testing::AnyOf;
using ::testing::Eq;

constexpr int kClients = 4;

class ThreadsTest : public FakeEngineTest {
 protected:
  // Runs client(i) on a separate thread for each client.
  template <typename Client>
  static void as_clients(Client client) {
    std::vector<std::thread> threads;
    threads.reserve(kClients);
    for (int i = 0; i < kClients; ++i) threads.emplace_back(client, i);
    for (std::thread& thread : threads) thread.join();
  }
  // Nothing remains of the requests.
  void expect_idle() {
    drain();
    EXPECT_EQ(engine_->check(), "");
    const EngineStats stats = engine_->stats();
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.waiting, 0);
    EXPECT_EQ(stats.preparing, 0);
  }
};

TEST_F(ThreadsTest, ConcurrentAnswersEqualSingleOnes) {
  options_.max_num_batched_tokens = 24;
  options_.memory.pool_bytes = 24 * kFakeBlockBytes;  // small enough for preemptions
  swap_blocks_ = 8;
  start();
  engine_->start_watchdog(std::chrono::minutes(1));
  const auto request_of = [](int client, int i) {
    auto request = ask(numbered_prompt(3 + 5 * i, 7 * i + client), 5 + i % 9);
    request.sampling.n = 1 + i % 2;
    request.sampling.temperature = i % 3 ? 1 : 0;
    request.sampling.seed = i;
    request.tenant = std::to_string(client);
    if (i % 4 == 0)
      request.constraint =
          AnswerConstraint{AnswerConstraint::Kind::kRegex, "[ab]{2,40}", {}, true, "regex"};
    return request;
  };
  constexpr int kEach = 12;
  std::vector<std::vector<int32_t>> alone;
  for (int client = 0; client < kClients; ++client)
    for (int i = 0; i < kEach; ++i) alone.push_back(tokens_of(request_of(client, i)));
  as_clients([&](int client) {
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (int i = 0; i < kEach; ++i) sinks.push_back(submit(request_of(client, i)));
    for (int i = 0; i < kEach; ++i) {
      const Answer answer = sinks[i]->wait();
      ASSERT_TRUE(answer.done) << answer.error->message;
      EXPECT_EQ(answer.first().tokens, alone[client * kEach + i]) << client << ' ' << i;
    }
    (void)engine_->stats();
    (void)engine_->tokenize("abc", true);
  });
  expect_idle();
}

TEST_F(ThreadsTest, CancelledRequestIsSilentInEveryState) {
  start();
  as_clients([&](int client) {
    std::mt19937 random(client);
    for (int i = 0; i < 60; ++i) {
      const auto sink = std::make_shared<WaitingSink>();
      auto request = ask(numbered_prompt(20, i), 200);
      if (i % 3 == 0)
        request.constraint =
            AnswerConstraint{AnswerConstraint::Kind::kJsonObject, {}, {}, true, "json"};
      const RequestHandle handle = submit(request, sink);
      if (random() % 2) sink->wait_for_tokens(1 + static_cast<int>(random() % 3));
      engine_->cancel(handle);
    }
  });
  expect_idle();
}

TEST_F(ThreadsTest, AdaptersLoadAndUnloadDuringRequests) {
  options_.memory.pool_bytes = 40 * kFakeBlockBytes;
  start();
  const auto request = ask(numbered_prompt(20, 3), 6);
  // The name's answers with each content.
  std::vector<std::vector<int32_t>> known;
  for (const char* content : {"first", "second"}) {
    ASSERT_TRUE(load("name", content, true).ok());
    known.push_back(tokens_of(with(request, {{"name", 1}})));
  }
  EXPECT_NE(known[0], known[1]);
  std::atomic<bool> ends = false;
  std::thread loader([&] {
    for (int i = 0; !ends; ++i) {
      EXPECT_TRUE(load({.name = "name", .path = i % 2 ? "first" : "second", .replace = true}).ok());
      EXPECT_TRUE(load({.name = "pinned", .path = "third", .pinned = true}).ok());
      EXPECT_TRUE(unload("pinned").ok());
      if (i % 3 == 0) {
        EXPECT_TRUE(unload("name").ok());
      }
      (void)engine_->adapters();
    }
  });
  std::atomic<int> answered = 0;
  as_clients([&](int client) {
    for (int i = 0; i < 40; ++i) {
      const auto sink = std::make_shared<WaitingSink>();
      auto asked = with(request, {{"name", 1}});
      asked.priority = client;
      const auto handle = engine_->submit(asked, sink);
      if (!handle.ok()) {
        EXPECT_EQ(handle.error().code, ErrorCode::kNotFound);
        continue;
      }
      if (i % 5 == 0) {
        engine_->cancel(*handle);
        continue;
      }
      const Answer answer = sink->wait();
      ASSERT_TRUE(answer.done) << answer.error->message;
      EXPECT_THAT(answer.first().tokens, AnyOf(Eq(known[0]), Eq(known[1])));
      ++answered;
    }
  });
  ends = true;
  loader.join();
  EXPECT_GT(answered, 0);
  expect_idle();
}

TEST_F(ThreadsTest, UnreadableAdapterFailsOnlyItsRequests) {
  start();
  ASSERT_TRUE(load({.name = "broken", .path = "broken folder", .lazy = true}).ok());
  EXPECT_EQ(load("nowhere", "/nowhere").error().code, ErrorCode::kNotFound);
  as_clients([&](int client) {
    for (int i = 0; i < 20; ++i) {
      auto request = ask(numbered_prompt(9, i), 3);
      const bool breaks = (i + client) % 2 == 0;
      if (breaks) request.adapters = {{"broken", 1}};
      const Answer answer = run(request);
      EXPECT_EQ(answer.error.has_value(), breaks);
      if (breaks) {
        EXPECT_EQ(answer.error->message, "broken folder is broken");
      }
    }
  });
  expect_idle();
}

TEST_F(ThreadsTest, PicturesArePreparedWhileOthersRun) {
  take_pictures();
  options_.media_workers = 2;
  start();
  const auto request_of = [](int i) {
    const auto png = media::testing::encode_png(media::testing::make_picture(16, 24, i % 5));
    const std::string url = "data:image/png;base64," +
                            encode_base64({reinterpret_cast<const char*>(png.data()), png.size()});
    auto request = ask(ChatPrompt{{{"user", {MediaRef{.url = url}, "what?"}}}, {}}, 4);
    request.client = std::to_string(i % 3);
    return request;
  };
  std::vector<std::vector<int32_t>> alone;
  for (int i = 0; i < 5; ++i) alone.push_back(tokens_of(request_of(i)));
  as_clients([&](int client) {
    for (int i = client; i < client + 20; ++i) {
      const auto sink = std::make_shared<WaitingSink>();
      const RequestHandle handle = submit(request_of(i), sink);
      if (i % 4 == 0) {
        engine_->cancel(handle);
        continue;
      }
      const Answer answer = sink->wait();
      ASSERT_TRUE(answer.done) << answer.error->message;
      EXPECT_EQ(answer.first().tokens, alone[i % 5]);
    }
  });
  expect_idle();
}

TEST_F(ThreadsTest, FailedStepEndsOnlyItsRequests) {
  std::atomic<int> steps = 0;
  on_step_ = [&](const scheduler::StepPlan&) -> Status {
    if (++steps % 7) return {};
    return internal("the step failed");
  };
  start();
  std::atomic<int> failed = 0, done = 0;
  as_clients([&](int client) {
    for (int i = 0; i < 25; ++i) {
      const Answer answer = run(ask(numbered_prompt(9, i + client), 1 + i % 6));
      if (answer.done) {
        ++done;
        continue;
      }
      ++failed;
      EXPECT_EQ(answer.error->message, "the step failed");
    }
  });
  EXPECT_GT(done, 0);
  EXPECT_GT(failed, 0);
  EXPECT_TRUE(engine_->healthy());
  expect_idle();
}

TEST_F(ThreadsTest, StepExceptionEndsEngine) {
  std::atomic<int> steps = 0;
  on_step_ = [&](const scheduler::StepPlan&) -> Status {
    if (++steps < 20) return {};
    throw std::runtime_error("the weights are lost");
  };
  start();
  as_clients([&](int client) {
    for (;;) {
      const auto sink = std::make_shared<WaitingSink>();
      const auto handle = engine_->submit(ask(numbered_prompt(9, client), 5), sink);
      if (!handle.ok()) {
        EXPECT_EQ(handle.error().code, ErrorCode::kUnavailable);
        return;
      }
      const Answer answer = sink->wait();
      if (answer.error) {
        EXPECT_EQ(answer.error->code, ErrorCode::kInternal);
      }
    }
  });
  EXPECT_FALSE(engine_->healthy());
  drain();
}

TEST_F(ThreadsTest, ADrainBeginsWhileClientsSend) {
  start();
  std::atomic<int> open = 0, late = 0;
  std::atomic<bool> drained = false;
  std::thread drainer;
  as_clients([&](int client) {
    for (int i = 0;; ++i) {
      const auto sink = std::make_shared<WaitingSink>([&](int) { late += drained; });
      ++open;
      const auto handle = engine_->submit(ask(numbered_prompt(9, i), 8), sink);
      if (!handle.ok()) {
        --open;
        EXPECT_EQ(handle.error().code, ErrorCode::kUnavailable);
        return;
      }
      if (client == 0 && i == 10)
        drainer = std::thread([&] {
          drain();
          drained = true;
        });
      EXPECT_TRUE(sink->wait().done);
      --open;
    }
  });
  drainer.join();
  EXPECT_EQ(open, 0);
  EXPECT_EQ(late, 0) << "the drain ended before its requests";
}

}  // namespace
}  // namespace valora::serving
