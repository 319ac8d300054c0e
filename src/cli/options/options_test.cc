#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "cli/options/parser.h"
#include "cli/options/vllm_flags.h"

namespace valora::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program with one command, as `valora serve`.
struct ServeProgram {
  ServeProgram() {
    program.command().add_option("--log-level", log_level, "");
    Command serve = program.command().add_subcommand("serve", "");
    serve.add_option("model,--model", model, "").required();
    serve.add_option("--max-model-len", length, "").human_integer();
    add_vllm_flags(serve, notes);
  }
  // What is printed is kept in `errors`.
  std::optional<int> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "test");
    testing::internal::CaptureStderr();
    const auto status = program.parse(static_cast<int>(arguments.size()), arguments.data());
    errors = testing::internal::GetCapturedStderr();
    return status;
  }

  Program program{"test", "test 1"};
  std::string log_level, model, errors;
  int64_t length = 0;
  std::vector<std::string> notes;
};

TEST(Options, TheModelIsAPositionalArgumentOrAnOption) {
  ServeProgram positional, named, neither;
  EXPECT_EQ(positional.parse({"serve", "folder", "--log-level", "debug"}), std::nullopt);
  EXPECT_EQ(positional.model, "folder");
  EXPECT_EQ(positional.log_level, "debug");
  EXPECT_EQ(named.parse({"serve", "--model", "folder"}), std::nullopt);
  EXPECT_EQ(named.model, "folder");
  EXPECT_GT(neither.parse({"serve"}), 0);
  EXPECT_THAT(neither.errors, HasSubstr("model is required"));
}

TEST(Options, HelpShowsAListAsItIsTyped) {
  Program program("test", "test 1");
  std::vector<int> ranks{8, 16};
  program.command().add_option("--ranks", ranks, "").delimiter(',').capture_default_str();
  testing::internal::CaptureStdout();
  const char* const asked[] = {"test", "--help"};
  EXPECT_EQ(program.parse(2, asked), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("--ranks INT=8 16 ..."));
}

TEST(HumanInteger, TakesSuffixes) {
  const auto length_of = [](const char* text) {
    ServeProgram serve;
    EXPECT_EQ(serve.parse({"serve", "m", "--max-model-len", text}), std::nullopt) << serve.errors;
    return serve.length;
  };
  EXPECT_EQ(length_of("2048"), 2048);
  EXPECT_EQ(length_of("2k"), 2000);
  EXPECT_EQ(length_of("2K"), 2048);
  EXPECT_EQ(length_of("25.6k"), 25600);
  EXPECT_EQ(length_of("1G"), int64_t{1} << 30);
  for (const char* bad : {"k", "2kb", "1.2345k", "x2k", "1e30k", "two"})
    EXPECT_GT(ServeProgram().parse({"serve", "m", "--max-model-len", bad}), 0) << bad;
}

TEST(VllmFlags, AreAcceptedWithALineEach) {
  ServeProgram serve;
  EXPECT_EQ(serve.parse({"serve", "m", "--enable-lora", "--max-loras", "4", "--enforce-eager",
                         "--gpu-memory-utilization", "0.9", "--trust-remote-code",
                         "--tensor-parallel-size", "1"}),
            std::nullopt);
  EXPECT_THAT(serve.notes,
              ElementsAre(HasSubstr("--enable-lora: "), HasSubstr("--max-cpu-loras"),
                          HasSubstr("--enforce-eager: "), HasSubstr("--kv-cache-memory"),
                          HasSubstr("--trust-remote-code: "), HasSubstr("one device")));
  const char* const refused[] = {"test", "serve", "m", "--tensor-parallel-size", "2"};
  EXPECT_THROW(ServeProgram().program.parse(5, refused), std::invalid_argument);
}

TEST(UnknownOptions, AreNamedInOrderWithTheNearest) {
  ServeProgram serve;
  EXPECT_GT(serve.parse({"serve", "m", "--max-model-length", "5", "--enable-loras", "--zzz=1"}), 0);
  EXPECT_EQ(serve.errors,
            "error: unknown option --max-model-length; did you mean --max-model-len?\n"
            "error: unexpected argument 5\n"
            "error: unknown option --enable-loras; did you mean --enable-lora?\n"
            "error: unknown option --zzz\n");
}

}  // namespace
}  // namespace valora::cli
