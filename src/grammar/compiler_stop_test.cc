// Compilations whose result is no longer needed.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <thread>

#include "grammar/budget.h"
#include "grammar/budget_poll.h"
#include "grammar/compiler.h"
#include "grammar/testing/byte_vocabulary.h"
#include "grammar/testing/test_grammars.h"

namespace valora::grammar {
namespace {

// Whatever does not stop in these tests never ends.
constexpr CompilerOptions kUnlimited{.limits = {int64_t{1} << 40, 1e9}, .quick_seconds = 1e9};

TEST(CompilerStop, EndsARunningCompilation) {
  GrammarCompiler compiler(byte_vocabulary(), kUnlimited);
  std::stop_source slow, quick;
  auto compiled = std::async(std::launch::async, [&] {
    return compiler.compile(JsonSchemaSpec{endless_schema()}, slow.get_token());
  });
  auto tried = std::async(std::launch::async, [&] {
    return *compiler.try_compile(JsonSchemaSpec{endless_schema()}, quick.get_token());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // usually in the middle of it
  quick.request_stop();
  EXPECT_EQ(tried.get().error().code, ErrorCode::kCancelled);
  slow.request_stop();
  EXPECT_EQ(compiled.get().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(compiler.stats().stopped, 2);
  EXPECT_EQ(compiler.stats().refused, 0);
}

TEST(CompilerStop, LeavesTheCompilerUsable) {
  GrammarCompiler compiler(byte_vocabulary(), kUnlimited);
  std::stop_source stop;
  stop.request_stop();
  const JsonSchemaSpec spec{R"({"type": "object", "required": ["a"], "properties":
      {"a": {"type": "string", "pattern": "^[a-z]{2,40}x?$"}, "b": {"type": "number"}}})"};
  EXPECT_EQ(compiler.compile(spec, stop.get_token()).error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(compiler.cached(spec));
  const auto made = compiler.compile(spec);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(matches(*GrammarMatcher::start(*made), R"({"a": "zz"})"));
  ASSERT_TRUE(compiler.cached(spec));
  EXPECT_EQ(compiler.cached(spec)->value().get(), made->get());
}

TEST(Budget, PollsStopLoopsThatDoNotAllocate) {
  poll_budget();  // without a budget
  std::stop_source stop;
  const Budget budget({int64_t{1} << 40, 1e9}, stop.get_token());
  const auto loop = [] {
    for (int i = 0; i < 10000; ++i) poll_budget();
  };
  EXPECT_NO_THROW(loop());
  stop.request_stop();
  EXPECT_THROW(loop(), BudgetExceeded);
  EXPECT_THROW(poll_budget(), BudgetExceeded) << "also if the first exception is swallowed";
}

}  // namespace
}  // namespace valora::grammar
