// Test helper: a program with a single command, like `valora serve`.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/parser.h"
#include "cli/options/vllm_flags.h"

namespace valora::cli::testing {

struct ServeProgram {
  ServeProgram() {
    program.command().add_option("--log-level", log_level, "");
    Command serve = program.command().add_subcommand("serve", "");
    serve.add_option("model,--model", model, "").required();
    serve.add_option("--max-model-len", length, "").human_integer();
    serve.add_option("--lora-modules", adapters, "");
    serve.add_option("--limit-mm-per-prompt", limits, "");
    serve.add_option("--kv-cache-memory,--pool-memory", pool, "");
    serve.add_flag("!--no-enable-prefix-caching", prefix_caching, "");
    add_vllm_flags(serve, notes);
  }
  // Output is captured in `errors`.
  std::optional<int> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "test");
    ::testing::internal::CaptureStderr();
    const auto status = program.parse(static_cast<int>(arguments.size()), arguments.data());
    errors = ::testing::internal::GetCapturedStderr();
    return status;
  }

  Program program{"test", "test 1"};
  std::string log_level, model, limits, pool, errors;
  int64_t length = 0;
  bool prefix_caching = true;
  std::vector<std::string> adapters, notes;
};

}  // namespace valora::cli::testing
