#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/options/human_number.h"
#include "cli/options/unknown_options.h"
#include "cli/options/vllm_flags.h"

namespace valora::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A program with one command, as `valora serve`.
struct Program {
  Program() {
    app.fallthrough();
    app.add_option("--log-level", log_level);
    serve = app.add_subcommand("serve");
    serve->add_option("model,--model", model)->required();
    serve->add_option("--max-model-len", length)->transform(human_integer());
    add_vllm_flags(*serve, notes);
  }
  void parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
  }

  CLI::App app{"test"};
  CLI::App* serve = nullptr;
  std::string log_level, model;
  int64_t length = 0;
  std::vector<std::string> notes;
};

int64_t length_of(const std::string& text) {
  Program program;
  program.parse({"serve", "m", "--max-model-len", text});
  return program.length;
}

TEST(Options, TheModelIsAPositionalArgumentOrAnOption) {
  Program positional, named;
  positional.parse({"serve", "folder", "--log-level", "debug"});
  EXPECT_EQ(positional.model, "folder");
  EXPECT_EQ(positional.log_level, "debug");
  named.parse({"serve", "--model", "folder"});
  EXPECT_EQ(named.model, "folder");
  EXPECT_THROW(Program().parse({"serve"}), CLI::RequiredError);
}

TEST(HumanInteger, TakesSuffixes) {
  EXPECT_EQ(length_of("2048"), 2048);
  EXPECT_EQ(length_of("2k"), 2000);
  EXPECT_EQ(length_of("2K"), 2048);
  EXPECT_EQ(length_of("25.6k"), 25600);
  EXPECT_EQ(length_of("1G"), int64_t{1} << 30);
  for (const char* bad : {"k", "2kb", "1.2345k", "x2k", "1e30k", "two"})
    EXPECT_THROW(length_of(bad), CLI::ParseError) << bad;
}

TEST(VllmFlags, AreAcceptedWithALineEach) {
  Program program;
  program.parse({"serve", "m", "--enable-lora", "--max-loras", "4", "--enforce-eager",
                 "--gpu-memory-utilization", "0.9", "--trust-remote-code", "--tensor-parallel-size",
                 "1"});
  EXPECT_THAT(program.notes,
              ElementsAre(HasSubstr("--enable-lora: "), HasSubstr("--max-cpu-loras"),
                          HasSubstr("--enforce-eager: "), HasSubstr("--kv-cache-memory"),
                          HasSubstr("--trust-remote-code: "), HasSubstr("one device")));
  EXPECT_THROW(Program().parse({"serve", "m", "--tensor-parallel-size", "2"}),
               std::invalid_argument);
}

TEST(UnknownOptions, AreNamedInOrderWithTheNearest) {
  Program program;
  EXPECT_THROW(
      program.parse({"serve", "m", "--max-model-length", "5", "--enable-loras", "--zzz=1"}),
      CLI::ExtrasError);
  EXPECT_THAT(describe_unknown(program.app),
              ElementsAre("unknown option --max-model-length; did you mean --max-model-len?",
                          "unexpected argument 5",
                          "unknown option --enable-loras; did you mean --enable-lora?",
                          "unknown option --zzz"));
}

}  // namespace
}  // namespace valora::cli
