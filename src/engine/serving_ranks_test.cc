// An engine whose model is shared by several ranks: answers equal those of one rank, and a failing
// rank ends the engine.
#include <thread>

#include "base/machine/cores.h"
#include "engine/testing/engine_fixture.h"
#include "ops/lora/low_rank_products.h"

namespace valora {
namespace {

using namespace testing;

class RanksEngine : public TwoAdapterTest {
 protected:
  std::vector<std::vector<int32_t>> answers_with(int ranks, const std::string& policy) {
    options_.tensor_parallel_size = ranks;
    options_.scheduling.policy = policy;
    engine_.reset();
    start_with_adapters();
    std::vector<std::shared_ptr<WaitingSink>> sinks;
    for (const auto& request : requests_) sinks.push_back(submit(request));
    std::vector<std::vector<int32_t>> tokens;
    for (const auto& sink : sinks) tokens.push_back(sink->wait().first().tokens);
    EXPECT_EQ(engine_->check(), "");
    return tokens;
  }
  const std::vector<GenerateRequest> requests_{
      base_, with(base_, {{"one", 1}}), with(base_, {{"two", 1}}), with(base_, {{"one", 0.5f}}),
      with(base_, {{"two", 1}, {"one", -1}})};
};

TEST_F(RanksEngine, AnswersEqualOneRank) {
  const auto alone = answers_with(1, "unmerged");
  EXPECT_EQ(engine_->stats().collectives, 0);
  for (const int ranks : {2, 4})
    for (const char* policy : {"unmerged", "merged", "mixture"}) {
      EXPECT_EQ(answers_with(ranks, policy), alone) << ranks << " ranks, " << policy;
      EXPECT_GT(engine_->stats().collectives, 0);
    }
}

TEST_F(RanksEngine, BindingRanksToCoresKeepsAnswers) {
  const std::vector<int> usable = cpus_of_affinity();
  const auto alone = answers_with(1, "unmerged");
  options_.rank_cores = std::to_string(usable.front());
  EXPECT_EQ(answers_with(1, "unmerged"), alone);
  if (usable.size() < 2) return;
  options_.rank_cores += "|" + std::to_string(usable[1]);
  EXPECT_EQ(answers_with(2, "mixture"), alone);
  EXPECT_EQ(cpus_of_affinity(), usable) << "of the thread that starts engines";
}

// With two KV heads, each of two ranks has one; on four ranks, each head is on two.
TEST_F(RanksEngine, CacheBytesStayEqualUntilHeadsRepeat) {
  std::vector<int64_t> bytes;
  for (const int ranks : {1, 2, 4}) {
    options_.tensor_parallel_size = ranks;
    start();
    bytes.push_back(engine_->model().kv_token_bytes);
  }
  EXPECT_EQ(bytes[1], bytes[0]);
  EXPECT_EQ(bytes[2], 2 * bytes[0]);
}

// Low-rank products that fail on all threads but the first.
class FailsOnOthers final : public ops::LowRankProducts {
 public:
  FailsOnOthers() { ops::set_low_rank_products(this); }
  ~FailsOnOthers() override { ops::set_low_rank_products(nullptr); }
  void add(const at::Tensor&, const ops::LoraBatch&, int, const at::Tensor&) override {
    // The first caller is one of the ranks.
    std::thread::id none;
    if (first_.compare_exchange_strong(none, std::this_thread::get_id())) return;
    TORCH_CHECK(first_ == std::this_thread::get_id(), "no luck");
  }

 private:
  std::atomic<std::thread::id> first_;
};

TEST_F(RanksEngine, FailedRankEndsEngine) {
  options_.tensor_parallel_size = 2;
  start_with_adapters();
  EXPECT_FALSE(run(base_).error);
  EXPECT_TRUE(engine_->healthy());
  {
    const FailsOnOthers fails;
    const auto answer = run(with(base_, {{"one", 1}}));
    ASSERT_TRUE(answer.error);
    EXPECT_EQ(answer.error->code, ErrorCode::kInternal);
  }
  EXPECT_FALSE(engine_->healthy());
  EXPECT_FALSE(engine_->submit(base_, std::make_shared<WaitingSink>()).ok());
}

TEST_F(RanksEngine, UnsupportedRankOptionsAreRefused) {
  const auto refusal = [&](int ranks) {
    options_.tensor_parallel_size = ranks;
    const auto engine = make_engine();
    return engine.ok() ? "served" : engine.error().message;
  };
  EXPECT_EQ(refusal(3),
            "--tensor-parallel-size 3: the 4 attention heads of Qwen2ForCausalLM do not divide "
            "evenly");
  options_.kernels = KernelBackend::kReference;
  EXPECT_EQ(refusal(2), "--tensor-parallel-size 2: ranks need --kernels native");
}

}  // namespace
}  // namespace valora
