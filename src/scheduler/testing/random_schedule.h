// A random schedule: requests arrive, are cancelled and fail, copies fail or are slow, the pool
// shrinks and grows, images take several steps to encode. Every request must produce the same
// output as on its own, and the scheduler's invariants must hold after each step.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/fault.h"
#include "base/testing/allocation_faults.h"
#include "memory/simulated_mover.h"
#include "scheduler/step_loop.h"
#include "scheduler/testing/fake_runner.h"
#include "scheduler/testing/progress_check.h"
#include "scheduler/testing/random_worlds.h"

namespace valora::scheduler::testing {

using valora::testing::AllocationFault;
using valora::testing::SparedThread;

struct Tested final : Request {
  int wanted = 0;
  std::vector<PositionRange> images;
};

// Random order, leaving out random requests.
class ErraticPolicy final : public Policy {
 public:
  explicit ErraticPolicy(std::mt19937& random) : random_(random) {}
  std::string name() const override { return "erratic"; }
  PolicyPlan plan(const PolicyState& state, TimePoint) const override {
    PolicyPlan plan;
    plan.order.resize(state.size());
    std::iota(plan.order.begin(), plan.order.end(), RequestIndex{0});
    std::shuffle(plan.order.begin(), plan.order.end(), random_);
    plan.order.resize(plan.order.size() - random_() % (plan.order.size() / 2 + 1));
    return plan;
  }

 private:
  std::mt19937& random_;
};

// Guesses what the fake model will generate, sometimes ending in a wrong guess.
class HalfRightProposer final : public Proposer {
 public:
  int most() const override { return 4; }
  std::vector<int32_t> propose(Request& request, int most) const override {
    std::vector<int32_t> guesses = generate_alone(request.identity, request.tokens, most);
    const uint64_t luck = DigestBuilder().add(request.id).add(request.tokens.size()).finish().low;
    guesses.resize(luck % (guesses.size() + 1));
    if (luck % 3 == 0 && !guesses.empty()) guesses.back() = (guesses.back() + 1) % kVocabulary;
    return guesses;
  }
};

class RandomSchedule : StepListener, StepExecutor {
 public:
  RandomSchedule(const RandomWorld& world, uint32_t seed)
      : world_(world),
        random_(seed),
        mover_({.load_bandwidth = 1e3, .swap_bandwidth = 1e4}, clock_,
               [this](const memory::Move&) { return fate(); }),
        pool_(pool_config(world), mover_, clock_),
        runner_(world.blocks, world.pool.swap_blocks),
        scheduler_(world.config, pool_, policy(), clock_) {
    mover_.on_copied = [this](const memory::Move& move) { runner_.copy(move); };
  }

  void run_steps(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      arrive();
      cancel();
      if (world_.keeps && chance(20)) (void)pool_.keep(need_of(1 + pick(adapters())), chance(2));
      if (chance(200)) pool_.forget(need_of(1 + pick(adapters())).digest);
      if (world_.faults && chance(100)) set_capacity(world_.blocks - pick(world_.blocks / 3));
      step();
    }
    set_capacity(world_.blocks);
    for (int i = 1; world_.keeps && i <= adapters(); ++i) (void)pool_.keep(need_of(i), false);
    for (int i = 0; i < 20000 && !scheduler_.idle() && !::testing::Test::HasFatalFailure(); ++i) {
      clock_.advance(std::chrono::milliseconds(1));
      step();
    }
    EXPECT_TRUE(scheduler_.idle()) << "requests are stuck";
    // A step releases the merged adapter, unless memory does not suffice to plan it.
    for (int i = 0; i < 20 && (i == 0 || pool_.usage() > 0); ++i) step();
    for (int i = 0; i < 1000 && pool_.moving(); ++i) {
      clock_.advance(std::chrono::milliseconds(10));
      pool_.advance();
    }
    EXPECT_FALSE(pool_.moving());
    EXPECT_EQ(pool_.usage(), 0);
    EXPECT_EQ(scheduler_.check(), "");
  }

  const Scheduler& scheduler() const { return scheduler_; }
  const memory::Pool& pool() const { return pool_; }
  int finished() const { return finished_; }
  int cancelled() const { return cancelled_; }
  int failed() const { return failed_; }
  int encodings() const { return encodings_; }
  int starved() const { return starved_; }    // failed for lack of memory
  int given_up() const { return given_up_; }  // failed allocations that ended no request
  const std::map<Mode, int>& modes() const { return modes_; }  // steps in each mode

 private:
  std::unique_ptr<Policy> policy() {
    if (world_.erratic_policy) return std::make_unique<ErraticPolicy>(random_);
    return world_.make ? world_.make() : make_policy(world_.policy).value();
  }
  int pick(int n) { return static_cast<int>(random_() % n); }
  bool chance(int one_in) { return pick(one_in) == 0; }

  int adapters() const { return static_cast<int>(world_.adapter_blocks.size()); }

  static memory::PoolConfig pool_config(const RandomWorld& world) {
    memory::PoolConfig config = world.pool;
    config.blocks = world.blocks;
    config.prefix_caching = world.prefix_caching;
    config.period = std::chrono::milliseconds(5);
    return config;
  }

  memory::SimulatedMover::Outcome fate() {
    const SparedThread this_test;
    if (!world_.faults) return {};
    return {chance(15) ? Status(internal("the copy failed")) : Status(), chance(15) ? 50.0 : 1.0};
  }

  memory::AdapterNeed need_of(int adapter) const {
    return {DigestBuilder().add("adapter").add(adapter).finish(),
            world_.adapter_blocks.at(adapter - 1)};
  }

  // True if an adapter and the next one fit together, with some tokens.
  bool fit_together(int adapter) const {
    const memory::AdapterNeed both[] = {need_of(adapter), need_of(adapter + 1)};
    return pool_.max_tokens(both) > 1;
  }

  // Sometimes at another scale, or with a second adapter.
  memory::KvIdentity identity_of(int adapter) {
    memory::KvIdentity identity;
    if (adapter == 0) return identity;
    DigestBuilder builder;
    identity.adapters.push_back(need_of(adapter));
    if (chance(6) && adapter < adapters() && fit_together(adapter))
      identity.adapters.push_back(need_of(adapter + 1));
    for (const memory::AdapterNeed& need : identity.adapters) builder.add(need.digest);
    identity.adapter = builder.add(pick(8) == 0 ? 0.5F : 1.0F).finish();
    return identity;
  }

  // Prompts share prefixes: texts, image sizes and adapters come from small sets.
  std::shared_ptr<Tested> make() {
    auto request = std::make_shared<Tested>();
    request->id = ++ids_;
    request->arrival = clock_.now();
    request->priority = pick(8) == 0 ? -1 : 0;
    request->adapter = request->merge = pick(adapters() + 1) - 1;
    request->identity = identity_of(request->adapter + 1);
    if (request->merge >= 0) {
      request->merge_need = need_of(request->merge + 1);
      request->merges_among_others = request->merge % 2 == 0;
      request->decoder_adapters = {{request->merge, 8 << pick(3), pick(6) == 0 ? 0.5F : 1.0F}};
    }
    if (chance(4)) request->tolerance = std::chrono::milliseconds(1 + pick(30));
    const auto limit = static_cast<int>(pool_.max_tokens(request->identity.adapters));
    const int prompt = 1 + pick(std::min(limit - 1, 90));
    const int text = pick(2);
    for (int i = 0; i < prompt; ++i) request->tokens.push_back((i * 7 + text) % kVocabulary);
    int end = pick(20);
    while (chance(2) && end + 2 < prompt) {
      const int tokens = std::min(18, prompt - end);
      request->identity.media.push_back({end, tokens, digest_of(chance(2) ? "cat" : "dog")});
      std::fill_n(request->tokens.begin() + end, tokens, 99);
      end += tokens + pick(3) * 8;
    }
    if (world_.joint)
      for (const memory::MediaSpan& span : request->identity.media)
        request->images.push_back({span.token_begin, span.token_begin + span.tokens});
    request->joint = request->images;
    request->prompt_tokens = prompt;
    if (world_.rope.limit > 0) add_rope(*request, limit);
    request->wanted = 1 + pick(std::min(limit - request->prompt_tokens, 80));
    request->most_tokens = request->prompt_tokens + request->wanted;
    return request;
  }

  // Gives the request frequencies that follow its prompt's length; the prompt is often an earlier
  // request with its answer and some more tokens.
  void add_rope(Tested& request, int limit) {
    if (ended_ && chance(2) && static_cast<int>(ended_->tokens.size()) + 8 < limit) {
      request.adapter = ended_->adapter;
      request.merge = ended_->merge;
      request.merge_need = ended_->merge_need;
      request.merges_among_others = ended_->merges_among_others;
      request.decoder_adapters = ended_->decoder_adapters;
      request.identity = ended_->identity;
      request.tokens = ended_->tokens;
      request.tokens.resize(request.tokens.size() + static_cast<size_t>(pick(8)), 1);
      request.prompt_tokens = static_cast<int>(request.tokens.size());
    }
    request.identity.rope = world_.rope;
    request.identity.rope.prompt_tokens = request.prompt_tokens;
    request.identity.rope.prompt = request.prompt_tokens;
  }

  void arrive() {
    clock_.advance(std::chrono::milliseconds(1));
    for (int n = chance(3) ? pick(4) : 0; n > 0; --n) {
      auto request = make();
      if (scheduler_.stats().waiting >= world_.max_waiting) continue;
      const Status status = scheduler_.add(request);
      ASSERT_TRUE(status.ok()) << status.error().message;
      alive_[request->id] = request;
    }
  }

  void cancel() {
    if (alive_.empty() || !chance(60)) return;
    const auto it = std::next(alive_.begin(), pick(static_cast<int>(alive_.size())));
    scheduler_.finish(*it->second);
    alive_.erase(it);
    ++cancelled_;
    ASSERT_EQ(scheduler_.check(), "");
  }

  // Each image has three variants, chosen by the request, so that the same two do not serve all.
  static Digest visual_of(const Request& request, const memory::MediaSpan& span) {
    return DigestBuilder().add(span.digest).add(request.id % 3).finish();
  }

  template <typename Body>
  static void for_each_visual(const Request& request, int begin, int end, Body&& body) {
    for (const memory::MediaSpan& span : request.identity.media)
      if (span.token_begin < end && span.token_begin + span.tokens > begin)
        body(visual_of(request, span));
  }

  bool ready(const Request& request, int begin, int end) const override {
    bool all = true;
    if (world_.encodes)
      for_each_visual(request, begin, end,
                      [&](const Digest& visual) { all &= encoded_.contains(visual); });
    return all;
  }

  // Keeps only the embeddings that the plan needs, and sometimes encodes one more image.
  void encode(const StepPlan& plan) {
    std::set<Digest> needed;
    const auto need = [&](const StepItem& item) {
      const Request& request = *item.request;
      ASSERT_EQ(request.state, RequestState::kRunning);
      for_each_visual(request, request.computed_tokens, request.computed_tokens + item.tokens,
                      [&](const Digest& visual) { needed.insert(visual); });
    };
    for (const StepItem& item : plan.items) {
      need(item);
      ASSERT_TRUE(ready(*item.request, item.request->computed_tokens,
                        item.request->computed_tokens + item.tokens))
          << "a step with an image that is not encoded";
    }
    for (const StepItem& item : plan.preparing) need(item);
    std::erase_if(encoded_, [&](const Digest& visual) { return !needed.contains(visual); });
    for (const Digest& visual : needed)
      if (!encoded_.contains(visual) && (plan.items.empty() || chance(4))) {
        encoded_.insert(visual);
        ++encodings_;
        return;
      }
  }

  void check_plan(const StepPlan& plan) {
    int total = 0;
    std::set<const Request*> once;
    std::set<AdapterId> closed;
    for (size_t i = 0; i < plan.items.size(); ++i) {
      const StepItem& item = plan.items[i];
      const Request& request = *item.request;
      ASSERT_TRUE(once.insert(&request).second);
      ASSERT_EQ(request.state, RequestState::kRunning);
      ASSERT_GE(item.known(), 1);
      ASSERT_LE(item.known(), request.remaining_tokens());
      ASSERT_EQ(item.yields, item.known() == request.remaining_tokens());
      ASSERT_EQ(item.scored, item.yields ? item.tokens - item.known() + 1 : 0);
      ASSERT_TRUE(item.drafts.empty() || (item.yields && item.known() == 1));
      ASSERT_LE(request.computed_tokens + item.tokens,
                int(request.table.blocks.size()) * memory::kBlockTokens);
      ASSERT_EQ(int(request.table.state.size()), world_.pool.state_blocks);
      for (size_t k = 0; k < item.kept.size(); ++k) {
        ASSERT_EQ((request.computed_tokens + item.kept[k]) % memory::kBlockTokens, 0);
        ASSERT_LE(item.kept[k], item.tokens);
        ASSERT_EQ(int(request.table.kept[k].size()), world_.pool.state_blocks);
      }
      for (const PositionRange& range : request.joint) {
        const int64_t end = request.computed_tokens + item.tokens;
        ASSERT_FALSE(range.begin < end && end < range.end) << "a step that ends in an image";
      }
      const AdapterId before = plan.items[i > 0 ? i - 1 : 0].request->adapter;
      for (const memory::AdapterNeed& need : request.identity.adapters) {
        const memory::AdapterNode* node = pool_.tree().find_adapter(need.digest);
        if (need.blocks > 0) {
          ASSERT_TRUE(node && node->resident() && runner_.intact(*node));
        }
      }
      if (before != request.adapter) closed.insert(before);
      ASSERT_FALSE(closed.contains(request.adapter));
      total += item.tokens;
    }
    ASSERT_EQ(total, plan.total_tokens);
    ASSERT_LE(total, world_.config.max_num_batched_tokens);
    ASSERT_LE(static_cast<int>(plan.items.size()), world_.config.max_num_seqs);
  }

  void step() {
    planned_ = false;
    const int ended = finished_ + failed_;
    const int given_up = given_up_;
    run_step();
    // A pool that shrank may have no room for a request.
    const bool excused = shrunk_ || given_up_ > given_up;
    ASSERT_EQ(progress_.after_step(planned_ || finished_ + failed_ > ended || excused), "");
    ASSERT_EQ(scheduler_.check(), "");
  }

  // Consecutive steps that may do nothing. A request that turns out to need no image is admitted in
  // one step and runs in the next.
  static int quiet_steps(const RandomWorld& world) {
    if (world.erratic_policy) return 20;
    return world.encodes ? 1 : 0;
  }

  void set_capacity(int32_t blocks) {
    pool_.set_capacity(blocks);
    shrunk_ = blocks < world_.blocks;
  }

  // If the world starves, some allocation fails in every tenth step.
  StepReport run_step() {
    if (!world_.starves) return loop_.step();
    const int starved = starved_;
    whole_step_starved_ = false;
    if (!chance(10)) return loop_.step();
    const AllocationFault fault(pick(chance(2) ? 20 : 300));
    const StepReport report = loop_.step();
    if (!whole_step_starved_) {
      EXPECT_LE(starved_, starved + (fault.struck() ? 1 : 0));
    }
    given_up_ += fault.struck() && starved_ == starved ? 1 : 0;
    return report;
  }

  void on_planned(const StepPlan& plan) override {
    const SparedThread this_test;
    planned_ = true;
    ++modes_[plan.mode];
    ASSERT_EQ(scheduler_.check(), "");
    ASSERT_NO_FATAL_FAILURE(check_plan(plan));
    ASSERT_NO_FATAL_FAILURE(check_merged(plan));
  }

  // An adapter that may not be merged among others runs merged with its own requests alone.
  static void check_merged(const StepPlan& plan) {
    if (plan.merged == kBaseModel || plan.merged % 2 == 0) return;
    for (const StepItem& item : plan.items)
      ASSERT_EQ(item.request->merge, plan.merged) << "request " << item.request->id;
  }

  std::vector<FailedRequest> prepare(const StepPlan& plan) override {
    const SparedThread this_test;
    if (world_.starves && chance(200)) {
      whole_step_starved_ = true;  // perhaps for the second time
      throw std::bad_alloc();
    }
    std::vector<FailedRequest> failed;
    if (world_.encodes) encode(plan);
    for (const StepItem& item : plan.items)
      if (chance(500)) failed.push_back({item.request, internal("its image is broken")});
    for (const StepItem& item : plan.preparing)
      if (chance(200)) failed.push_back({item.request, internal("its image is broken")});
    return failed;
  }

  Result<std::vector<StepOutput>> run(const StepPlan& plan) override {
    const SparedThread this_test;
    if (world_.starves && chance(100)) {
      whole_step_starved_ = true;
      throw std::bad_alloc();
    }
    auto outputs = runner_.run(plan);
    cancel();  // clients may cancel while the step runs
    if (chance(200)) return internal("the step failed");
    return outputs;
  }

  void on_output(StepOutput& output) override {
    const SparedThread this_test;
    auto& request = static_cast<Tested&>(*output.request);
    for (const SampledToken& token : output.tokens) request.tokens.push_back(token.id);
    if (request.generated_tokens() == request.wanted) finish(request);
  }

  void on_failed(Request& request, const Error& error) override {
    const SparedThread this_test;
    starved_ += error.message == out_of_memory().message ? 1 : 0;
    const auto keep = alive_.at(request.id);
    scheduler_.finish(request);
    alive_.erase(request.id);
    ++failed_;
  }

  void finish(Tested& request) {
    const auto prompt_end = request.tokens.begin() + request.prompt_tokens;
    ASSERT_EQ(
        std::vector<int32_t>(prompt_end, request.tokens.end()),
        generate_alone(request.identity, {request.tokens.begin(), prompt_end}, request.wanted))
        << "request " << request.id << " was preempted " << request.preemptions
        << " times and found " << request.cached_tokens << " tokens";
    scheduler_.finish(request);
    if (world_.rope.limit > 0) ended_ = alive_.at(request.id);
    alive_.erase(request.id);
    ++finished_;
  }

  RandomWorld world_;
  std::mt19937 random_;
  SimulatedClock clock_;
  memory::SimulatedMover mover_;
  memory::Pool pool_;
  FakeRunner runner_;
  Scheduler scheduler_;
  StepLoop loop_{scheduler_, *this, *this, clock_};
  ProgressCheck progress_{scheduler_, quiet_steps(world_)};
  bool planned_ = false;
  bool shrunk_ = false;
  std::set<Digest> encoded_;
  int encodings_ = 0;
  std::map<RequestId, std::shared_ptr<Tested>> alive_;
  std::shared_ptr<Tested> ended_;  // in a world with a rope: the last request that finished
  RequestId ids_ = 0;
  std::map<Mode, int> modes_;
  int finished_ = 0;
  int cancelled_ = 0;
  int failed_ = 0;
  bool whole_step_starved_ = false;
  int starved_ = 0, given_up_ = 0;
};

}  // namespace valora::scheduler::testing
