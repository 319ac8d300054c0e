// Sends requests to an engine while one allocation fails: the n-th of all its threads, by operator
// new or torch's allocator.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "base/testing/allocation_faults.h"
#include "engine/testing/engine_fixture.h"

namespace valora::testing {

// torch's own allocator with injected failures.
class FailingTensors final : public c10::Allocator {
 public:
  static void install() {
    static FailingTensors allocator;
    c10::SetCPUAllocator(&allocator, 1);
  }
  c10::DataPtr allocate(size_t bytes) override {
    TORCH_CHECK(!allocation_fails(),
                "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
                " bytes");
    return torch_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return torch_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    torch_->copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* const torch_ = c10::GetCPUAllocator();
};

// Counts failed model steps in the log and prints nothing.
class FailedSteps final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  int take() { return count_.exchange(0); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (text.starts_with("a step of")) ++count_;
  }
  void flush_() override {}
  std::atomic<int> count_ = 0;
};

// A WaitingSink whose own allocations never fail.
class SparedSink final : public ResponseSink {
 public:
  explicit SparedSink(std::function<void(int)> on_token = {}) : sink_(std::move(on_token)) {}

  void on_start(const Usage& usage, const PromptTokens& prompt) override {
    const SparedThread spared;
    sink_.on_start(usage, prompt);
  }
  void on_output(OutputChunk chunk) override {
    const SparedThread spared;
    sink_.on_output(std::move(chunk));
  }
  void on_classification(Classification result) override {
    const SparedThread spared;
    sink_.on_classification(std::move(result));
  }
  void on_embedding(std::vector<float> values) override {
    const SparedThread spared;
    embedding_ = std::move(values);
  }
  void on_done(const FinalInfo& info) override {
    const SparedThread spared;
    sink_.on_done(info);
    ended_.set_value();
  }
  void on_error(const Error& error) override {
    const SparedThread spared;
    sink_.on_error(error);
    ended_.set_value();
  }

  bool ends() { return end_.wait_for(std::chrono::seconds(60)) == std::future_status::ready; }
  Answer answer() { return sink_.wait(); }
  const std::vector<float>& embedding() const { return embedding_; }

 private:
  WaitingSink sink_;
  std::vector<float> embedding_;
  std::promise<void> ended_;
  std::future<void> end_ = ended_.get_future();
};

// The client-visible content of a successful answer.
inline std::string text_of(const Answer& answer, const std::vector<float>& embedding) {
  std::string text;
  for (const auto& [index, choice] : answer.choices) {
    text += "#" + choice.text + ":";
    for (const int32_t token : choice.tokens) text += std::to_string(token) + ",";
    text += std::string("!") + finish_reason_name(choice.finish.value().reason);
  }
  if (answer.classification) text += "class " + std::to_string(answer.classification->best);
  if (answer.done) text += " prompt " + std::to_string(answer.done->prompt_token_ids.size());
  for (const float value : embedding) text += " " + std::to_string(value);
  return text;
}

inline bool reports_out_of_memory(const Error& error) {
  if (error.code == ErrorCode::kUnavailable) return true;
  return error.message.ends_with("could not create an engine");  // oneDNN does not say why
}

class EngineFaults : public TwoAdapterTest {
 protected:
  EngineFaults() {
    FailingTensors::install();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("", failed_steps_));
    options_.max_waiting = 4;  // a leaked place shows soon
  }
  ~EngineFaults() override {
    const SparedThread this_test;
    engine_.reset();
  }

  struct Outcome {
    std::vector<std::string> answers;  // empty: that request failed
    std::vector<Error> errors;
    uint64_t allocations = 0;
    bool struck = false;
  };

  // Runs all requests at once; the n-th allocation fails, and with `lasting` all later ones, too.
  Outcome run(std::vector<GenerateRequest> requests, uint64_t n, bool lasting = false) {
    Outcome outcome;
    std::vector<std::shared_ptr<SparedSink>> sinks(requests.size());
    std::vector<std::optional<Result<RequestHandle>>> handles(requests.size());
    for (auto& sink : sinks) sink = std::make_shared<SparedSink>();
    {
      const AllocationFault fault(n, lasting);
      for (size_t i = 0; i < requests.size(); ++i)
        handles[i] = engine_->submit(std::move(requests[i]), sinks[i]);
      const SparedThread this_test;
      for (size_t i = 0; i < sinks.size(); ++i)
        if (handles[i]->ok() && !sinks[i]->ends()) {
          ADD_FAILURE() << "request " << i << " hangs";
          std::fflush(stdout);
          std::_Exit(1);
        }
      outcome.struck = fault.struck();
      outcome.allocations = fault.seen();
    }
    for (size_t i = 0; i < sinks.size(); ++i) {
      std::optional<Error> error;
      if (!handles[i]->ok()) error = handles[i]->error();
      const Answer answer = error ? Answer{} : sinks[i]->answer();
      if (answer.error) error = answer.error;
      outcome.answers.push_back(error ? "" : text_of(answer, sinks[i]->embedding()));
      if (error) outcome.errors.push_back(*error);
    }
    return outcome;
  }

  // Makes equivalent requests for every number, which share no cached state with each other.
  using Make = std::function<std::vector<GenerateRequest>(uint64_t)>;

  // Runs the requests once per n (every stride-th) with the n-th allocation failing; then again,
  // for a third of these n, with all later allocations failing as well, so that each site fails
  // repeatedly. Failed requests must report the reason, all others and later requests must get
  // their answers, and nothing may leak.
  void fail_each(const Make& requests, uint64_t stride = 1) {
    ASSERT_NO_FATAL_FAILURE(fail_each(requests, stride, false));
    ASSERT_NO_FATAL_FAILURE(fail_each(requests, 3 * stride, true));
    drain();
  }

  void fail_each(const Make& requests, uint64_t stride, bool lasting) {
    constexpr uint64_t kNever = 1'000'000'000;
    const uint64_t first = lasting ? kNever / 2 : 0;
    (void)run(requests(first), kNever);  // allocates one-time state
    const Outcome right = run(requests(first + 1), kNever);
    ASSERT_THAT(right.errors, ::testing::IsEmpty()) << right.errors[0].message;
    const std::vector<GenerateRequest> later = {ask(numbered_prompt(20, 9), 2)};
    const Outcome right_later = run(later, kNever);
    (void)failed_steps_->take();
    int struck = 0, failed = 0, alone = 0;
    for (uint64_t n = 0;; n += stride) {
      SCOPED_TRACE(::testing::Message() << "allocation " << n << " of " << right.allocations);
      const Outcome outcome = run(requests(first + 2 + n), n, lasting);
      const int failed_steps = failed_steps_->take();
      for (size_t i = 0; i < outcome.answers.size(); ++i) {
        if (outcome.answers[i].empty()) continue;
        ASSERT_EQ(outcome.answers[i], right.answers[i]) << i;
      }
      for (const Error& error : outcome.errors)
        ASSERT_TRUE(reports_out_of_memory(error)) << error.message;
      if (failed_steps == 0 && !lasting) {
        ASSERT_LE(outcome.errors.size(), 1u) << "others were harmed";
      }
      ASSERT_TRUE(outcome.struck || outcome.errors.empty());
      ASSERT_EQ(run(later, kNever).answers, right_later.answers);
      ASSERT_TRUE(engine_->healthy());
      ASSERT_EQ(engine_->check(), "");
      ASSERT_EQ(engine_->check(), "");  // its effects show in the second check
      const EngineStats stats = engine_->stats();
      ASSERT_EQ(stats.running + stats.waiting + stats.preparing, 0);
      ASSERT_EQ(stats.memory.running_blocks, 0);
      ASSERT_EQ(stats.memory.total - stats.memory.free,
                stats.memory.history_blocks + stats.memory.adapter_blocks);
      // Runs differ, because thread scheduling does.
      if (!outcome.struck && n >= right.allocations) break;
      struck += outcome.struck ? 1 : 0;
      failed += outcome.errors.empty() ? 0 : 1;
      alone += outcome.errors.size() == 1 ? 1 : 0;
      ASSERT_LT(n, 100'000u);
    }
    std::printf("%d faults, %d of them ended a request, %d just one\n", struck, failed, alone);
    EXPECT_GT(struck, 100);
    EXPECT_GT(failed, struck / 4);
    if (!lasting) {
      EXPECT_GT(alone, 0);
    }
  }

  const GenerateRequest short_ = ask(numbered_prompt(40, 3), 4);
  const std::shared_ptr<FailedSteps> failed_steps_ = std::make_shared<FailedSteps>();
};

}  // namespace valora::testing
