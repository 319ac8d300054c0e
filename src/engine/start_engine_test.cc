// What a start refuses, and in which order.
#include "engine/start_engine.h"

#include <gmock/gmock.h>

#include "engine/testing/tiny_checkpoint.h"

namespace valora {
namespace {

using namespace testing;
using ::testing::HasSubstr;

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

TEST_F(StartTest, WhatPromptsNeedIsCheckedBeforeTheWeightsAreRead) {
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors"));
  folder_.write("chat_template.jinja", "{% if messages %}");
  EXPECT_THAT(refusal(), HasSubstr("chat_template.jinja"));
  folder_.write("tokenizer.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace valora
