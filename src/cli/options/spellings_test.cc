#include "cli/options/spellings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "cli/options/testing/serve_program.h"

namespace valora::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ServeProgram;
using ::testing::UnorderedElementsAre;

TEST(Spellings, VllmSpellingsAreTranslated) {
  const std::vector<std::string> known{"--max-model-len",      "--limit-mm-per-prompt",
                                       "--swap_dir",           "--tensor-parallel-size",
                                       "--optimization-level", "--stop"};
  const auto rewritten = [&](const std::vector<std::string>& arguments) {
    return as_known(arguments, {known, {}});
  };
  using Arguments = std::vector<std::string>;
  EXPECT_EQ(rewritten({"--max_model_len", "1_0", "--max_model-len=a_b", "--swap_dir", "x_y"}),
            (Arguments{"--max-model-len", "1_0", "--max-model-len=a_b", "--swap_dir", "x_y"}));
  EXPECT_EQ(rewritten({"--not_known", "--", "--max_model_len"}),
            (Arguments{"--not_known", "--", "--max_model_len"}));
  EXPECT_EQ(rewritten({"-tp", "2", "-tp=4", "-O3", "-O", "1", "-Ox", "-pp", "2"}),
            (Arguments{"--tensor-parallel-size", "2", "--tensor-parallel-size=4",
                       "--optimization-level=3", "--optimization-level", "1",
                       "--optimization-level=x", "-pp", "2"}));
  EXPECT_EQ(rewritten({"--limit_mm_per_prompt.image", "2", "m", "--limit-mm-per-prompt.video=0",
                       "--limit-mm-per-prompt.a.b_c", "x"}),
            (Arguments{"--limit-mm-per-prompt", R"({"image":2,"video":0,"a":{"b_c":"x"}})", "m"}));
  EXPECT_EQ(rewritten({"--limit-mm-per-prompt.", "2", "--limit-mm-per-prompt.a"}),
            (Arguments{"--limit-mm-per-prompt.", "2", "--limit-mm-per-prompt.a"}));
}

TEST(Spellings, FlagsAcceptABooleanValue) {
  const KnownOptions known{{"--early", "--caching", "--no-caching", "--dtype"},
                           {"--early", "--caching", "--no-caching"}};
  const auto rewritten = [&](const std::vector<std::string>& arguments) {
    return as_known(arguments, known);
  };
  using Arguments = std::vector<std::string>;
  EXPECT_EQ(rewritten({"--early", "True", "--early=true", "--early", "model"}),
            (Arguments{"--early", "--early", "--early", "model"}));
  EXPECT_EQ(rewritten({"--early", "False", "--early=FALSE"}),
            (Arguments{"--early=false", "--early=false"}));
  EXPECT_EQ(rewritten({"--caching=False", "--no-caching", "false", "--no_caching=true"}),
            (Arguments{"--no-caching", "--caching", "--no-caching"}));
  EXPECT_EQ(rewritten({"--early=falsehood", "--dtype", "false", "--early"}),
            (Arguments{"--early=falsehood", "--dtype", "false", "--early"}));
}

TEST(Spellings, FlagValuesReachTheOptions) {
  ServeProgram serve;
  EXPECT_EQ(serve.parse({"serve", "--enable-lora", "True", "--enable_prefix_caching=False",
                         "--enable-chunked-prefill", "False", "--disable-log-stats", "false",
                         "--enable-sleep-mode", "false", "m"}),
            std::nullopt)
      << serve.errors;
  EXPECT_EQ(serve.model, "m");
  EXPECT_FALSE(serve.prefix_caching);
  EXPECT_THAT(serve.notes,
              UnorderedElementsAre("--enable-lora: adapters are always enabled",
                                   HasSubstr("--no-enable-chunked-prefill: has no effect"),
                                   HasSubstr("--disable-log-stats false: has no effect")));
  ServeProgram in_a_file;
  const valora::testing::TempDir dir;
  const std::string file = dir.write("options.yaml",
                                     "enable-prefix-caching: false\n"
                                     "enable_chunked_prefill: no\n"
                                     "disable-log-stats: false\n");
  EXPECT_EQ(in_a_file.parse({"serve", "m", "--config", file.c_str()}), std::nullopt)
      << in_a_file.errors;
  EXPECT_FALSE(in_a_file.prefix_caching);
  EXPECT_THAT(in_a_file.notes,
              UnorderedElementsAre(HasSubstr("--no-enable-chunked-prefill: has no effect"),
                                   HasSubstr("--disable-log-stats false: has no effect")));
}

TEST(Spellings, TranslatedSpellingsReachTheOptions) {
  ServeProgram serve;
  EXPECT_EQ(serve.parse({"serve", "m", "--max_model_len", "2K", "--lora_modules", "a=1", "b=2",
                         "--limit-mm-per-prompt.image", "2", "--log_level=debug"}),
            std::nullopt)
      << serve.errors;
  EXPECT_EQ(serve.length, 2048);
  EXPECT_THAT(serve.adapters, ElementsAre("a=1", "b=2"));
  EXPECT_EQ(serve.limits, R"({"image":2})");
  EXPECT_EQ(serve.log_level, "debug");
}

}  // namespace
}  // namespace valora::cli
