#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "base/testing/temp_dir.h"
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
    serve.add_option("--lora-modules", adapters, "");
    serve.add_option("--limit-mm-per-prompt", limits, "");
    serve.add_option("--kv-cache-memory,--pool-memory", pool, "");
    serve.add_flag("!--no-enable-prefix-caching", prefix_caching, "");
    add_vllm_flags(serve, notes);
  }
  // What is printed is kept in `errors`.
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
  ::testing::internal::CaptureStdout();
  const char* const asked[] = {"test", "--help"};
  EXPECT_EQ(program.parse(2, asked), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("--ranks INT=8 16 ..."));
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

// A file with this text, for --config.
struct OptionFile {
  explicit OptionFile(const std::string& text) : path(folder.write("options.yaml", text)) {}
  const valora::testing::TempDir folder;
  const std::string path;
};

// What is thrown when the command line is `serve --config` and a file with this text.
std::string file_refusal_of(const std::string& text) {
  const OptionFile file(text);
  const char* const arguments[] = {"test", "serve", "--config", file.path.c_str()};
  try {
    ServeProgram().program.parse(4, arguments);
  } catch (const std::invalid_argument& e) {
    return std::string(e.what()).substr(file.path.size());
  }
  return "nothing";
}

TEST(ConfigFile, SetsWhatTheCommandLineDoesNot) {
  const OptionFile file(
      "model: folder\n"
      "log-level: debug\n"
      "max_model_len: 2K\n"
      "lora-modules: [a=one, {name: b, path: '7', rank: 8}]\n"
      "limit-mm-per-prompt: {image: 2}\n"
      "no-enable-prefix-caching: true\n"
      "enable-lora: true\n"
      "enforce-eager: false\n");
  ServeProgram plain, other;
  EXPECT_EQ(plain.parse({"serve", "--config", file.path.c_str()}), std::nullopt) << plain.errors;
  EXPECT_EQ(plain.model, "folder");
  EXPECT_EQ(plain.log_level, "debug");
  EXPECT_EQ(plain.length, 2048);
  EXPECT_THAT(plain.adapters, ElementsAre("a=one", R"({"name":"b","path":"7","rank":8})"));
  EXPECT_EQ(plain.limits, R"({"image":2})");
  EXPECT_FALSE(plain.prefix_caching);
  EXPECT_THAT(plain.notes, ElementsAre(HasSubstr("--enable-lora: ")));
  const auto status = other.parse({"serve", "mine", "--lora-modules", "c=three", "--config",
                                   file.path.c_str(), "--max-model-len", "7"});
  EXPECT_EQ(status, std::nullopt) << other.errors;
  EXPECT_EQ(other.model, "mine");
  EXPECT_EQ(other.length, 7);
  EXPECT_THAT(other.adapters, ElementsAre("c=three"));
}

TEST(ConfigFile, RefusesWhatItCannotSet) {
  EXPECT_EQ(file_refusal_of("model: m\nmax-model-length: 5\n"),
            ":2: unknown option --max-model-length; did you mean --max-model-len?");
  EXPECT_EQ(file_refusal_of("config: other.yaml"),
            ":1: --config is an option of the command line alone");
  EXPECT_EQ(file_refusal_of("pool-memory: 1\nkv_cache_memory: 2"),
            ":2: \"kv_cache_memory\" is a second name of an option that the file has");
  EXPECT_EQ(file_refusal_of("lora-modules: []"),
            ":1: \"lora-modules\" has no value; leave it out instead");
  EXPECT_EQ(file_refusal_of("lora-modules: [[a]]"),
            ":1: \"lora-modules\" has a list within a list");
  EXPECT_EQ(file_refusal_of("- model"), ":1: a file of options is a map, such as port: 8000");
  EXPECT_THAT(file_refusal_of("model: [a"), HasSubstr("this is not YAML"));
  EXPECT_EQ(file_refusal_of("# no options, and no model either"), "nothing");
}

TEST(ConfigFile, ErrorsOfValuesNameTheOption) {
  const OptionFile two("model: m\nmax-model-len: [1, 2]\n");
  ServeProgram serve, absent;
  EXPECT_GT(serve.parse({"serve", "--config", two.path.c_str()}), 0);
  EXPECT_THAT(serve.errors, HasSubstr("--max-model-len"));
  EXPECT_GT(absent.parse({"serve", "m", "--config", "/nowhere.yaml"}), 0);
  EXPECT_THAT(absent.errors, HasSubstr("/nowhere.yaml"));
}

}  // namespace
}  // namespace valora::cli
