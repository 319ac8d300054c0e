// What a start does: refusals, their order, and what it leaves to the engine.
#include "engine/start/start_engine.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <latch>
#include <set>
#include <string>

#include "engine/testing/tiny_checkpoint.h"
#include "ops/device/parallel.h"

namespace valora {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// The ids of this process's threads.
std::set<std::string> threads() {
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ids.insert(task.path().filename());
  return ids;
}

void compute_on_two_threads() {
  std::latch both(2);
  ops::torch_parallel()(0, 2, 1, [&](int64_t, int64_t) { both.arrive_and_wait(); });
}

class StartTest : public ::testing::Test {
 protected:
  StartTest() {
    write_tiny_model(folder_);
    folder_.write("model.safetensors", "no weights");
  }
  std::string refusal() const {
    EngineOptions options;
    options.model_path = folder_.path();
    options.memory.pool_bytes = 1 << 20;
    const auto engine = start_engine(options);
    return engine.ok() ? "started" : engine.error().message;
  }

  TempDir folder_;
};

// If the workers of the loading thread remained, there would be more of them than cores, and those
// of the engine would go to sleep between two launches.
TEST_F(StartTest, WorkersOfLoadingThreadAreReleased) {
  at::set_num_threads(2);
  compute_on_two_threads();
  TempDir folder;
  write_tiny_model(folder);
  EngineOptions options;
  options.model_path = folder.path();
  options.memory.pool_bytes = 8 << 20;
  const auto engine = start_engine(options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const std::set<std::string> before = threads();
  compute_on_two_threads();
  const std::set<std::string> after = threads();
  EXPECT_FALSE(std::includes(before.begin(), before.end(), after.begin(), after.end()))
      << "this thread still had a worker";
}

TEST_F(StartTest, PromptFilesAreCheckedBeforeWeights) {
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors"));
  folder_.write("chat_template.jinja", "{% if messages %}");
  EXPECT_THAT(refusal(), HasSubstr("chat_template.jinja"));
  folder_.write("tokenizer.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace valora
