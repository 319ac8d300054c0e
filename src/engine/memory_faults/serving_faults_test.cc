// An allocation failing anywhere in a request's life ends only the requests it was made for; all
// others get their answers, and nothing leaks.
#include <thread>

#include "base/fault.h"
#include "engine/memory_faults/faults_fixture.h"
#include "serving/loop/core.h"

namespace valora {
namespace {

using namespace testing;
using Requests = std::vector<GenerateRequest>;

// The same answer, but without prefix-cache hits from another run.
GenerateRequest fresh(GenerateRequest request, uint64_t n) {
  request.cache_salt = std::to_string(n);
  return request;
}

GenerateRequest choices() {
  GenerateRequest request = ask(numbered_prompt(40, 3), 3);
  request.sampling.n = 2;
  request.sampling.temperature = 1;
  request.sampling.seed = 7;
  request.sampling.logprobs = 2;
  request.sampling.stop = {"never", "also never"};
  return request;
}

Requests texts(uint64_t n) { return {fresh(choices(), n), ask(numbered_prompt(18, 5), 3)}; }

TEST_F(EngineFaults, TextRequestsSurviveFailedAllocations) {
  start();
  fail_each(texts);
}

// Each run reads the adapters from their files again.
TEST_F(EngineFaults, AdapterRequestsSurviveFailedAllocations) {
  changes_.core = [](serving::CoreConfig& core) {
    core.pool.history = false;
    return Status();
  };
  start_with_adapters();
  fail_each([&](uint64_t) {
    return Requests{with(short_, {{"one", 1}}), with(short_, {{"two", 0.5F}})};
  });
}

class MergeFaults : public EngineFaults, public ::testing::WithParamInterface<MergePlace> {};

// Each run merges both adapters in turn.
TEST_P(MergeFaults, MergesSurviveFailedAllocations) {
  options_.scheduling.policy = "merged";
  options_.merge = GetParam();
  start_with_adapters();
  fail_each([&](uint64_t n) {
    return Requests{fresh(with(short_, {{"one", 1}}), n), fresh(with(short_, {{"two", 1}}), n)};
  });
}

INSTANTIATE_TEST_SUITE_P(Places, MergeFaults,
                         ::testing::Values(MergePlace::kShadow, MergePlace::kInPlace));

TEST_F(EngineFaults, ConstrainedAnswerSurvivesFailedAllocations) {
  start();
  fail_each([&](uint64_t n) {
    GenerateRequest request = ask(numbered_prompt(30, 3), 20);
    request.sampling.ignore_eos = false;
    // Must be compiled each time.
    request.constraint = {AnswerConstraint::Kind::kJsonSchema,
                          R"({"title": ")" + std::to_string(n) + R"(", "enum": ["abc", "abd"]})",
                          {},
                          true,
                          "field"};
    return Requests{request, ask(numbered_prompt(18, 5), 3)};
  });
}

TEST_F(EngineFaults, ScoredPromptsSurviveFailedAllocations) {
  start();
  fail_each([&](uint64_t) {
    GenerateRequest request = ask(numbered_prompt(20, 3), 2);
    request.sampling.prompt_logprobs = 1;
    return Requests{request};
  });
}

TEST_F(EngineFaults, EmbedClassifyTokenizeSurviveFailedAllocations) {
  TempDir labelled;
  write_tiny_adapter(labelled, 13, 3);
  start();
  ASSERT_TRUE(load("head", labelled.path()).ok());
  fail_each([&](uint64_t n) {
    GenerateRequest embedding = fresh(ask(numbered_prompt(20, 3), 1), n);
    embedding.task = Task::kEmbed;
    GenerateRequest label = with(ask(numbered_prompt(20, 3), 1), {{"head", 1}});
    label.task = Task::kClassify;
    GenerateRequest tokens = ask("some text", 1);
    tokens.task = Task::kTokenize;
    return Requests{embedding, label, tokens};
  });
}

// Two requests that do not fit together, in a pool with swap space.
TEST_F(EngineFaults, PreemptionsSurviveFailedAllocations) {
  options_.memory.pool_bytes = 6 * kTinyBlockBytes;
  options_.memory.swap_bytes = 20 * kTinyBlockBytes;
  options_.max_model_len = 80;
  start();
  fail_each(
      [&](uint64_t n) {
        return Requests{fresh(ask(numbered_prompt(30, 3), 40), n),
                        fresh(ask(numbered_prompt(31, 4), 40), n)};
      },
      17);
}

class LoadFaults : public EngineFaults, public ::testing::WithParamInterface<bool> {};

// Unloaded adapters can be loaded, loaded ones serve, no name refers to another adapter, and the
// reply to a load or unload says what became of the name. The parameter: pinned.
TEST_P(LoadFaults, LoadAndUnloadSurviveFailedAllocations) {
  start_with_adapters();
  struct Called {
    bool ok, struck;
  };
  const auto call = [&](uint64_t n, const auto& begin) {
    std::promise<bool> done;
    auto result = done.get_future();
    const AllocationFault fault(n);
    begin([&](const auto& outcome) {
      const SparedThread spared;
      done.set_value(outcome.ok());
    });
    const SparedThread this_test;
    if (result.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      ADD_FAILURE() << "allocation " << n << ": the call hangs";
      std::fflush(stdout);
      std::_Exit(1);
    }
    return Called{result.get(), fault.struck()};
  };
  const GenerateRequest request = with(short_, {{"new", 1}});
  const std::vector<int32_t> expected = tokens_of(with(short_, {{"two", 1}}));
  const auto is_loaded = [&] {
    bool found = false;
    for (const AdapterCard& card : engine_->adapters()) found |= card.name == "new";
    return found;
  };
  bool struck = true;
  for (uint64_t n = 0; struck; ++n) {
    SCOPED_TRACE(n);
    LoadAdapter two{.name = "new", .path = two_.path(), .pinned = GetParam()};
    const Called loading = call(n, [&](auto done) {
      try {
        engine_->load_adapter(std::move(two), done);
      } catch (const std::bad_alloc&) {
        done(Status(out_of_memory()));
      }
    });
    ASSERT_EQ(loading.ok, is_loaded());
    if (!loading.ok) {
      ASSERT_TRUE(load("new", two_.path()).ok());
    }
    ASSERT_EQ(tokens_of(request), expected);
    const Called unloading = call(n, [&](auto done) {
      try {
        engine_->unload_adapter("new", std::nullopt, done);
      } catch (const std::bad_alloc&) {
        done(Status(out_of_memory()));
      }
    });
    ASSERT_EQ(unloading.ok, !is_loaded());
    if (!unloading.ok) {
      ASSERT_TRUE(unload("new").ok());
    }
    ASSERT_EQ(engine_->check(), "");
    struck = loading.struck || unloading.struck;
  }
  drain();
}

INSTANTIATE_TEST_SUITE_P(Pinned, LoadFaults, ::testing::Bool());

TEST_F(EngineFaults, CancellationAllocatesNothing) {
  start();
  Gate gate;
  const auto sink = std::make_shared<SparedSink>([&](int tokens) {
    if (tokens != 1) return;
    gate.arrive();
    gate.pass();
  });
  const RequestHandle handle = submit(ask(numbered_prompt(20, 3), 50), sink);
  gate.wait_for_arrival();
  {
    const AllocationFault lasting(0, true);
    engine_->cancel(handle);
    engine_->cancel(handle);
    const SparedThread this_test;
    gate.open();
    while (sink.use_count() > 1) std::this_thread::yield();  // while the request holds the sink
  }
  EXPECT_EQ(engine_->check(), "");
  drain();
}

}  // namespace
}  // namespace valora
