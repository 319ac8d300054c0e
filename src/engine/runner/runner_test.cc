// After a failed step, the engine keeps working, or ends if its device is lost.
#include "engine/runner/runner.h"

#include <gtest/gtest.h>

#include "base/threads/host_communicator.h"
#include "engine/runner/model_fault.h"

namespace valora {
namespace {

using enum Communicator::Reduction;

class FailingModel final : public models::Model {
 public:
  FailingModel() : Model(spec()) {}
  static models::ModelSpec spec() {
    models::ModelSpec spec;
    spec.axes = 1;
    return spec;
  }
  at::Tensor forward(const models::Batch&) const override {
    TORCH_CHECK_WITH(OutOfMemoryError, !no_memory, "CUDA out of memory. Tried to allocate 2 GiB");
    TORCH_CHECK(false, "CUDA error: an illegal memory access was encountered");
  }
  at::Tensor logits(const at::Tensor&, const models::HeadAdaptation&) const override { return {}; }
  std::vector<models::Linear*> decoder_linears() override { return {}; }

  bool no_memory = false;
};

// A device on which a call failed: it recovers, or it no longer answers.
class FailedDevice final : public ops::LaunchedWork {
 public:
  FailedDevice(bool lost, int& waits) : lost_(lost), waits_(waits) {}
  void end_part() override { wait(); }
  void wait() override {
    ++waits_;
    TORCH_CHECK(!lost_, "CUDA error: unspecified launch failure");
  }

 private:
  bool lost_;
  int& waits_;
};

// A rank that does its part of a step and waits for the others in a collective.
class WaitingModel final : public models::Model {
 public:
  explicit WaitingModel(Communicator& communicator)
      : Model(FailingModel::spec()), communicator_(communicator) {}
  at::Tensor forward(const models::Batch&) const override {
    std::vector<float> sums(8);
    communicator_.all_reduce(0, sums, serial_for, kSum);
    return at::zeros({1, 1});
  }
  at::Tensor logits(const at::Tensor&, const models::HeadAdaptation&) const override { return {}; }
  std::vector<models::Linear*> decoder_linears() override { return {}; }

 private:
  Communicator& communicator_;
};

std::unique_ptr<RankRunner> rank_on(int rank, const models::Model& model) {
  return std::make_unique<RankRunner>(rank, model,
                                      ops::KvArena(1, {1, 1, 16, at::kFloat}, at::kCPU),
                                      std::nullopt, at::kCPU, nullptr);
}

class FailedSteps : public ::testing::Test {
 protected:
  Result<std::vector<scheduler::StepOutput>> run_on(bool lost) {
    std::vector<std::unique_ptr<RankRunner>> ranks;
    ranks.push_back(rank_on(0, model_));
    Runner runner(model_, std::make_unique<RankGroup>(std::move(ranks), nullptr), at::kFloat,
                  at::kCPU, std::make_unique<FailedDevice>(lost, waits_), {}, clock_);
    return runner.run({});
  }
  FailingModel model_;
  SimulatedClock clock_;
  int waits_ = 0;
};

TEST_F(FailedSteps, FailureOnHealthyDeviceEndsOnlyTheStep) {
  auto failed = run_on(false);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kInternal);
  EXPECT_EQ(waits_, 1) << "nothing of it runs when the next one begins";
  model_.no_memory = true;
  failed = run_on(false);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
}

TEST_F(FailedSteps, FailedRankEndsEngine) {
  auto communicator = std::make_unique<HostCommunicator>(2, HostCommunicator::Settings{});
  const WaitingModel waiting(*communicator);
  std::vector<std::unique_ptr<RankRunner>> ranks;
  ranks.push_back(rank_on(0, waiting));
  ranks.push_back(rank_on(1, model_));
  Runner runner(waiting, std::make_unique<RankGroup>(std::move(ranks), std::move(communicator)),
                at::kFloat, at::kCPU, std::make_unique<FailedDevice>(false, waits_), {}, clock_);
  for (int i = 0; i < 2; ++i) try {
      static_cast<void>(runner.run({}));
      ADD_FAILURE() << "no fault";
    } catch (const RankLostError& lost) {
      EXPECT_STREQ(lost.what(),
                   "rank 1 of 2 failed: CUDA error: an illegal memory access was encountered");
    }
  runner.release_threads();  // as the engine does when idle
}

TEST_F(FailedSteps, UnresponsiveDeviceEndsEngine) {
  EXPECT_THROW(run_on(true), DeviceLostError);
  try {
    static_cast<void>(run_on(true));
  } catch (const DeviceLostError& lost) {
    const std::string text = lost.what();
    EXPECT_NE(text.find("illegal memory access"), std::string::npos) << text;
    EXPECT_NE(text.find("unspecified launch failure"), std::string::npos) << text;
    EXPECT_EQ(text.find("Exception raised from"), std::string::npos) << "torch's stack";
  }
}

}  // namespace
}  // namespace valora
