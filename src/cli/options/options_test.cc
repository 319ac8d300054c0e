#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <stdexcept>

#include "base/testing/temp_dir.h"
#include "cli/options/media_flags.h"
#include "cli/options/parser.h"
#include "cli/options/testing/serve_program.h"
#include "cli/options/vllm_flags.h"

namespace valora::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ServeProgram;
using ::testing::UnorderedElementsAre;

TEST(Options, ModelIsAPositionalArgumentOrAnOption) {
  ServeProgram positional, named, neither;
  EXPECT_EQ(positional.parse({"serve", "folder", "--log-level", "debug"}), std::nullopt);
  EXPECT_EQ(positional.model, "folder");
  EXPECT_EQ(positional.log_level, "debug");
  EXPECT_EQ(named.parse({"serve", "--model", "folder"}), std::nullopt);
  EXPECT_EQ(named.model, "folder");
  EXPECT_GT(neither.parse({"serve"}), 0);
  EXPECT_THAT(neither.errors, HasSubstr("model is required"));
}

TEST(Options, HelpShowsAListDefaultAsItIsTyped) {
  Program program("test", "test 1");
  std::vector<int> ranks{8, 16};
  program.command().add_option("--ranks", ranks, "").delimiter(',').capture_default_str();
  ::testing::internal::CaptureStdout();
  const char* const asked[] = {"test", "--help"};
  EXPECT_EQ(program.parse(2, asked), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("--ranks INT=8 16 ..."));
}

TEST(HumanInteger, AcceptsSuffixes) {
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

TEST(VllmFlags, EachFlagIsAcceptedWithOneLogLine) {
  ServeProgram serve;
  EXPECT_EQ(serve.parse({"serve", "m", "--enable-lora", "--max-loras", "4", "--enforce-eager",
                         "--gpu-memory-utilization", "0.9", "--trust-remote-code",
                         "--pipeline-parallel-size", "1"}),
            std::nullopt);
  EXPECT_THAT(serve.notes,
              UnorderedElementsAre(HasSubstr("--enable-lora: "), HasSubstr("--max-cpu-loras"),
                                   HasSubstr("--enforce-eager: "), HasSubstr("--kv-cache-memory"),
                                   HasSubstr("--trust-remote-code: "), HasSubstr("one device")));
}

// The message thrown for these arguments after `serve m`.
std::string start_refusal_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"test", "serve", "m"});
  try {
    ServeProgram().program.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing";
}

TEST(VllmFlags, UnsupportedValueIsNamed) {
  EXPECT_THAT(start_refusal_of({"--pipeline-parallel-size", "2"}),
              HasSubstr("--pipeline-parallel-size 2 is not served: only 1"));
  EXPECT_THAT(start_refusal_of({"--load-format=pt"}),
              HasSubstr("--load-format pt is not served: weights are"));
  EXPECT_THAT(start_refusal_of({"--logits-processors", "my.module:Class"}),
              HasSubstr("--logits-processors my.module:Class is not served: "));
  EXPECT_THAT(start_refusal_of({"--max-loras", "four"}), HasSubstr("takes a number"));
  EXPECT_EQ(start_refusal_of({"--load_format", "auto", "-O3"}), "nothing");
}

TEST(VllmFlags, EveryListedOptionIsAcceptedOrRefusedByName) {
  std::set<std::string> names;
  for (const VllmOption& option : vllm_options()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second) << "twice";
    const bool flag = option.takes == VllmOption::Takes::kNothing;
    const std::string served(option.served);
    const std::string value = served.empty() ? "1" : served.substr(0, served.find('|'));
    std::vector<const char*> arguments{"serve", "m", option.name};
    if (!flag) arguments.push_back(value.c_str());
    ServeProgram serve;
    if (option.refused) {
      arguments.erase(arguments.begin(), arguments.begin() + 2);
      EXPECT_THAT(start_refusal_of(arguments),
                  HasSubstr(std::string(" is not served: ") + option.note));
      continue;
    }
    EXPECT_EQ(serve.parse(arguments), std::nullopt) << serve.errors;
    EXPECT_THAT(serve.notes, ElementsAre(HasSubstr(option.note)));
    if (served.empty()) continue;
    EXPECT_THAT(start_refusal_of({option.name, "another"}), HasSubstr("another is not served: "));
  }
}

MediaLimits limits_of(const std::string& text) {
  const auto limits = read_media_limits(text, {.images = 7, .videos = 8});
  EXPECT_TRUE(limits.ok()) << text << ": " << limits.error().message;
  return limits.ok() ? *limits : MediaLimits{};
}

TEST(MediaLimits, AcceptThreeForms) {
  for (const char* text :
       {R"({"image":2,"video":0})", "image=2,video=0",
        R"({"image":{"count":2,"width":512},"video":0})", R"({"image":2,"video":0,"audio":0})"}) {
    EXPECT_EQ(limits_of(text).images, 2) << text;
    EXPECT_EQ(limits_of(text).videos, 0) << text;
  }
  EXPECT_EQ(limits_of("image=1").videos, 8);
  EXPECT_EQ(limits_of("").images, 7);
  for (const char* wrong : {"[]", R"({"images":2})", R"({"audio":1})", R"({"image":-1})",
                            R"({"image":{}})", "image", R"({"image":"2"})"})
    EXPECT_FALSE(read_media_limits(wrong, {}).ok()) << wrong;
}

TEST(UnknownOptions, AreListedInOrderWithSuggestions) {
  ServeProgram serve;
  EXPECT_GT(serve.parse({"serve", "m", "--max_model_length", "5", "--enable-loras", "--zzz=1"}), 0);
  EXPECT_EQ(serve.errors,
            "error: unknown option --max_model_length; did you mean --max-model-len?\n"
            "error: unknown option --enable-loras; did you mean --enable-lora?\n"
            "error: unknown option --zzz\n");
}

TEST(UnknownOptions, AreNamedBeforeTheirValues) {
  const auto errors = [](std::vector<const char*> arguments) {
    ServeProgram serve;
    EXPECT_GT(serve.parse(std::move(arguments)), 0);
    return serve.errors;
  };
  EXPECT_EQ(errors({"serve", "--model", "m", "--lora-target-modules", "qkv_proj"}),
            "error: unknown option --lora-target-modules; did you mean --lora-modules?\n");
  EXPECT_EQ(errors({"serve", "m", "--tokenizer-modes", "hf"}),
            "error: unknown option --tokenizer-modes; did you mean --tokenizer-mode?\n");
  EXPECT_EQ(errors({"serve", "m", "--max-model-length", "5", "6"}),
            "error: unknown option --max-model-length; did you mean --max-model-len?\n"
            "error: unexpected argument 6\n");
  EXPECT_EQ(errors({"serve", "m", "--zzz", "--max-model-len", "5", "six"}),
            "error: unknown option --zzz\nerror: unexpected argument six\n");
  EXPECT_EQ(errors({"--zzz", "value", "serve", "m"}), "error: unknown option --zzz\n");
  EXPECT_EQ(errors({"serve", "m", "-z", "value", "-5"}),
            "error: unknown option -z\nerror: unexpected argument -5\n");
  EXPECT_THAT(errors({"serve", "--modell=m"}),
              ::testing::StartsWith("error: unknown option --modell; did you mean --model?\n"));
  EXPECT_EQ(errors({"serve", "m", "extra", "--zzz=1", "more"}),
            "error: unexpected argument extra\nerror: unknown option --zzz\n"
            "error: unexpected argument more\n");
}

// A file with this text, for --config.
struct OptionFile {
  explicit OptionFile(const std::string& text) : path(folder.write("options.yaml", text)) {}
  const valora::testing::TempDir folder;
  const std::string path;
};

// The message thrown when `serve --config` is given a file with this text.
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

TEST(ConfigFile, CommandLineOverridesTheFile) {
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
  EXPECT_THAT(plain.notes,
              ElementsAre(HasSubstr("--enable-lora: "), HasSubstr("--enforce-eager false: ")));
  const auto status = other.parse({"serve", "mine", "--lora-modules", "c=three", "--config",
                                   file.path.c_str(), "--max-model-len", "7"});
  EXPECT_EQ(status, std::nullopt) << other.errors;
  EXPECT_EQ(other.model, "mine");
  EXPECT_EQ(other.length, 7);
  EXPECT_THAT(other.adapters, ElementsAre("c=three"));
}

TEST(ConfigFile, RefusesInvalidKeys) {
  EXPECT_EQ(file_refusal_of("model: m\nmax-model-length: 5\n"),
            ":2: unknown option --max-model-length; did you mean --max-model-len?");
  EXPECT_EQ(file_refusal_of("config: other.yaml"),
            ":1: --config can only be given on the command line");
  EXPECT_EQ(file_refusal_of("pool-memory: 1\nkv_cache_memory: 2"),
            ":2: \"kv_cache_memory\" is another name of an option that the file already sets");
  EXPECT_EQ(file_refusal_of("lora-modules: []"),
            ":1: \"lora-modules\" has no value; leave it out instead");
  EXPECT_EQ(file_refusal_of("lora-modules: [[a]]"),
            ":1: \"lora-modules\" has a list within a list");
  EXPECT_EQ(file_refusal_of("- model"), ":1: a file of options is a map, such as port: 8000");
  EXPECT_THAT(file_refusal_of("model: [a"), HasSubstr("this is not YAML"));
  EXPECT_EQ(file_refusal_of("# no options, and no model either"), "nothing");
}

TEST(ConfigFile, ValueErrorsNameTheOption) {
  const OptionFile two("model: m\nmax-model-len: [1, 2]\n");
  ServeProgram serve, absent;
  EXPECT_GT(serve.parse({"serve", "--config", two.path.c_str()}), 0);
  EXPECT_THAT(serve.errors, HasSubstr("--max-model-len"));
  EXPECT_GT(absent.parse({"serve", "m", "--config", "/nowhere.yaml"}), 0);
  EXPECT_THAT(absent.errors, HasSubstr("/nowhere.yaml"));
}

}  // namespace
}  // namespace valora::cli
