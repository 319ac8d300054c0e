// Test fixture: a real engine on the tiny checkpoint, driven through the Engine interface.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "api/waiting_calls.h"
#include "engine/local_engine.h"
#include "engine/testing/tiny_checkpoint.h"
#include "engine/testing/waiting_sink.h"
#include "kernels/cpu/attention/kv_layout.h"

namespace valora::testing {

inline constexpr int64_t kTinyBlockBytes =
    kLayers * kernels::kv_elements<float>(kKvHeads, kHeadDim) * 4;

inline std::vector<int32_t> numbered_prompt(int tokens, int first) {
  std::vector<int32_t> ids(tokens);
  std::iota(ids.begin(), ids.end(), first);
  for (int32_t& id : ids) id %= 256;
  return ids;
}

inline GenerateRequest ask(Prompt prompt, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

// A barrier that opens once: pass() blocks until open(). In a sink's callback it stops the engine
// thread at that point.
class Gate {
 public:
  void open() { opened_.set_value(); }
  void pass() const { future_.wait(); }
  void arrive() { arrived_.set_value(); }
  void wait_for_arrival() { arrived_.get_future().wait(); }

 private:
  std::promise<void> opened_, arrived_;
  std::shared_future<void> future_ = opened_.get_future().share();
};

// A sink that stops the engine thread at the count-th token of its request.
inline std::shared_ptr<WaitingSink> gated_sink(Gate& gate, int count = 1) {
  return std::make_shared<WaitingSink>([&gate, count](int tokens) {
    if (tokens != count) return;
    gate.arrive();
    gate.pass();
  });
}

// Real time, and more on demand.
class DelayedClock final : public Clock {
 public:
  TimePoint now() const override { return real_clock().now() + delay_.load(); }
  void advance(Duration d) { delay_ = delay_.load() + d; }

 private:
  std::atomic<Duration> delay_{Duration{}};
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    write_tiny_model(model_);
    options_.model_path = model_.path();
    options_.dtype = ComputeDtype::kFloat32;
    options_.threads = 1;
    options_.memory.pool_bytes = 256 * kTinyBlockBytes;
  }
  void start() {
    auto engine = start_engine(options_, clock_);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(engine).value();
  }
  RequestHandle submit(const GenerateRequest& request, std::shared_ptr<ResponseSink> sink) {
    const auto handle = engine_->submit(request, std::move(sink));
    EXPECT_TRUE(handle.ok()) << handle.error().message;
    return handle.ok() ? *handle : 0;
  }
  std::shared_ptr<WaitingSink> submit(const GenerateRequest& request) {
    auto sink = std::make_shared<WaitingSink>();
    submit(request, sink);
    return sink;
  }
  Answer run(const GenerateRequest& request) { return submit(request)->wait(); }
  std::vector<int32_t> tokens_of(const GenerateRequest& request) {
    return run(request).first().tokens;
  }
  // The answers of the running engine, each alone, are those of an engine with options_ and too
  // little memory for all at once.
  void expect_the_same_when_preempted(const std::vector<GenerateRequest>& requests) {
    std::vector<std::vector<int32_t>> alone;
    for (const auto& request : requests) alone.push_back(tokens_of(request));
    options_.memory.pool_bytes = 9 * kTinyBlockBytes;
    options_.max_model_len = 100;
    start();
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (const auto& request : requests) sinks.push_back(submit(request));
    int preemptions = 0;
    for (size_t i = 0; i < sinks.size(); ++i) {
      const Answer answer = sinks[i]->wait();
      ASSERT_TRUE(answer.done) << answer.error->message;
      EXPECT_EQ(answer.first().tokens, alone[i]) << i;
      preemptions += answer.done->preemptions;
    }
    EXPECT_GT(preemptions, 0);
  }
  // A request of token ids, each of which seems to take 10 ms to compute: far longer than to read
  // its KV from the swap space, however slow the machine.
  Answer run_slowly(const GenerateRequest& request) {
    const auto ids = static_cast<int>(std::get<std::vector<int32_t>>(request.prompt).size());
    auto sink = std::make_shared<WaitingSink>([this, ids](int tokens) {
      if (tokens == 1) clock_.advance(ids * std::chrono::milliseconds(10));
    });
    submit(request, sink);
    return sink->wait();
  }
  // Needs the whole pool: all that is idle leaves it, whatever it is worth.
  void press() {
    const auto blocks = static_cast<int>(*options_.memory.pool_bytes / kTinyBlockBytes);
    EXPECT_FALSE(run_slowly(ask(numbered_prompt((blocks - 1) * 16, 40), 1)).error);
  }
  void drain() {
    std::promise<void> done;
    engine_->drain([&] { done.set_value(); });
    done.get_future().wait();
  }
  Result<AdapterCard> load(const LoadAdapter& request) {
    return load_adapter_now(*engine_, request);
  }
  Result<AdapterCard> load(const std::string& name, const std::string& path, bool replace = false) {
    return load({.name = name, .path = path, .replace = replace});
  }
  Status unload(const std::string& name) { return unload_adapter_now(*engine_, name); }

  TempDir model_;
  EngineOptions options_;
  DelayedClock clock_;
  std::unique_ptr<LocalEngine> engine_;
};

// Two tiny adapters, "one" and "two", and a request to put them on.
class TwoAdapterTest : public EngineTest {
 protected:
  TwoAdapterTest() {
    write_tiny_adapter(one_, 11);
    write_tiny_adapter(two_, 12);
  }
  void start_with_adapters() {
    start();
    EXPECT_TRUE(load("one", one_.path()).ok());
    EXPECT_TRUE(load("two", two_.path()).ok());
  }
  static GenerateRequest with(GenerateRequest request, std::vector<AdapterUse> adapters) {
    request.adapters = std::move(adapters);
    return request;
  }

  TempDir one_, two_;
  const GenerateRequest base_ = ask(numbered_prompt(40, 3), 12);
};

}  // namespace valora::testing
