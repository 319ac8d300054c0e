// Test fixture: a real engine on the tiny checkpoint, driven through the Engine interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/start/start_engine.h"
#include "engine/testing/tiny_checkpoint.h"
#include "kernels/cpu/attention/kv_layout.h"
#include "serving/testing/engine_fixture.h"

namespace valora::testing {

using namespace serving::testing;

inline constexpr int64_t kTinyBlockBytes =
    kLayers * kernels::kv_elements<float>(kKvHeads, kHeadDim) * 4;

class EngineTest : public EngineFixture {
 protected:
  EngineTest() {
    write_tiny_model(model_);
    options_.model_path = model_.path();
    options_.dtype = ComputeDtype::kFloat32;
    options_.threads = 1;
    options_.memory.pool_bytes = 256 * kTinyBlockBytes;
  }
  ~EngineTest() override { engine_.reset(); }  // before its model's folder
  Result<std::unique_ptr<serving::LocalEngine>> make_engine() override {
    return start_engine(options_, clock_, changes_);
  }
  // Expects the running engine's answers, each computed alone, to equal those of an engine with
  // options_ and too little memory for all requests at once.
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
  // Runs a request of token ids that each seem to take 10 ms to compute: far longer than reading
  // their KV from swap space, however slow the machine.
  Answer run_slowly(const GenerateRequest& request) {
    const auto ids = static_cast<int>(std::get<std::vector<int32_t>>(request.prompt).size());
    auto sink = std::make_shared<WaitingSink>([this, ids](int tokens) {
      if (tokens == 1) clock_.advance(ids * std::chrono::milliseconds(10));
    });
    submit(request, sink);
    return sink->wait();
  }
  // Runs a request that needs the whole pool, so that everything idle is evicted, whatever its
  // value.
  void press() {
    const int blocks = engine_->stats().memory.total;  // ranks pad theirs, so there are fewer
    EXPECT_FALSE(run_slowly(ask(numbered_prompt((blocks - 1) * 16, 40), 1)).error);
  }

  TempDir model_;
  EngineChanges changes_;
};

// Two tiny adapters, "one" and "two", and a request to apply them to.
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

  TempDir one_, two_;
  const GenerateRequest base_ = ask(numbered_prompt(40, 3), 12);
};

}  // namespace valora::testing
