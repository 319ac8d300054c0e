// Test fixture: an engine driven through the Engine interface.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "api/options.h"
#include "api/testing/waiting_sink.h"
#include "api/waiting_calls.h"
#include "serving/local_engine.h"

namespace valora::serving::testing {

using valora::testing::Answer;
using valora::testing::WaitingSink;

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

// A one-time barrier: pass() blocks until open(). Called in a sink's callback, it stops the engine
// thread there.
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

// A sink that blocks the engine thread at the count-th token of its request.
inline std::shared_ptr<WaitingSink> gated_sink(Gate& gate, int count = 1) {
  return std::make_shared<WaitingSink>([&gate, count](int tokens) {
    if (tokens != count) return;
    gate.arrive();
    gate.pass();
  });
}

// Real time plus an adjustable offset.
class DelayedClock final : public Clock {
 public:
  TimePoint now() const override { return real_clock().now() + delay_.load(); }
  void advance(Duration d) { delay_ = delay_.load() + d; }

 private:
  std::atomic<Duration> delay_{Duration{}};
};

class EngineFixture : public ::testing::Test {
 protected:
  virtual Result<std::unique_ptr<LocalEngine>> make_engine() = 0;

  void start() {
    auto engine = make_engine();
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
  void drain() {
    std::promise<void> done;
    engine_->drain([&] { done.set_value(); });
    done.get_future().wait();
  }
  Result<AdapterCard> load(const LoadAdapter& request) {
    return load_adapter_sync(*engine_, request);
  }
  Result<AdapterCard> load(const std::string& name, const std::string& path, bool replace = false) {
    return load({.name = name, .path = path, .replace = replace});
  }
  Status unload(const std::string& name) { return unload_adapter_sync(*engine_, name); }
  Status pin(const std::string& name, bool pinned = true) {
    return pin_adapter_sync(*engine_, name, pinned);
  }
  static GenerateRequest with(GenerateRequest request, std::vector<AdapterUse> adapters) {
    request.adapters = std::move(adapters);
    return request;
  }
  template <typename Condition>
  static void wait_until(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(condition());
  }

  EngineOptions options_;
  DelayedClock clock_;
  std::unique_ptr<LocalEngine> engine_;
};

}  // namespace valora::serving::testing
