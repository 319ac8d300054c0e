#include "text/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/temp_dir.h"
#include "text/testing/chat_parts.h"

namespace valora::text {
namespace {

using ::testing::HasSubstr;
using testing::image;
using testing::text;
using testing::video;

Result<std::string> render(std::string_view source, const std::vector<ChatMessage>& messages,
                           bool prompt = false, const Json& variables = nullptr,
                           ChatTemplateSettings settings = {}) {
  settings.image_placeholder = "<image>";
  settings.video_placeholder = "<video>";
  VALORA_TRY(format, make_chat_template(source, "the test", settings));
  return format->render(messages, prompt, variables);
}

const std::vector<ChatMessage> kHello = {{"user", {text("hello")}}};
const std::vector<ChatMessage> kMedia = {{"user", {text("see "), image(), text(" and "), video()}},
                                         {"assistant", {text("ok")}}};

constexpr std::string_view kString =
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
constexpr std::string_view kList =
    "{% for m in messages %}[{% for p in m['content'] %}{{ p.type }}{{ p.text }};{% endfor %}]{% "
    "endfor %}";
constexpr std::string_view kBoth =
    "{% for m in messages %}{% if m.content is string %}[{{ m.content }}]{% else %}({% for p in "
    "m.content %}{{ p.type "
    "}};{% endfor %}){% endif %}"
    "{% endfor %}";

TEST(ChatTemplate, ContentFormFollowsTemplate) {
  EXPECT_EQ(*render(kString, kMedia), "[user:see <image> and <video>][assistant:ok]");
  EXPECT_EQ(*render(kList, kMedia), "[textsee ;image;text and ;video;][textok;]");
  EXPECT_EQ(*render(kBoth, kMedia), "(text;image;text;video;)[ok]");
  EXPECT_EQ(*render(kString, {{"user", {}}}), "[user:]");
}

TEST(ChatTemplate, ThoughtsHaveTwoNames) {
  const std::vector<ChatMessage> thinking = {
      {.role = "assistant", .parts = {text("b")}, .thought = "a\xFF"}};
  EXPECT_EQ(*render("{% for m in messages %}{{ m.reasoning_content }}{{ m.reasoning }}{% endfor %}",
                    thinking),
            "a\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
  EXPECT_EQ(
      *render("{{ 'reasoning' in messages[0] }}{{ messages[0].reasoning_content is defined }}",
              kHello),
      "FalseFalse");
}

TEST(ChatTemplate, FollowsContentThroughVariablesAndMacros) {
  for (const char* source :
       {"{% macro show(c, n) %}{% for p in c %}{{ p.type }};{% endfor %}{% endmacro %}{% for m in "
        "messages %}{{ show(m.content, 1) }}{% endfor %}",
        "{% set rest = messages[0:] %}{% for m in rest %}{% set c = m.get('content') %}{% for p "
        "in c|list %}{{ p.type }};{% endfor %}{% endfor %}",
        "{% set first = messages|first %}{% set ns = namespace(c='') %}{% set ns.c = "
        "first['content'] or [] %}{% for p in ns.c %}{{ p.type }};{% endfor %}text;",
        "{{ messages[0].content[0].type }};image;text;video;text;"})
    EXPECT_EQ(*render(source, kMedia), "text;image;text;video;text;") << source;
}

TEST(ChatTemplate, UserTextIsNotEvaluated) {
  EXPECT_EQ(*render(kString, {{"user", {text("{{ 7 * 7 }}{% if x %}")}}}),
            "[user:{{ 7 * 7 }}{% if x %}]");
  EXPECT_EQ(*render("{{ messages[0].role }}", {{"{{ 1 }}", {}}}), "{{ 1 }}");
  EXPECT_EQ(*render(kString, {{"user", {text("a\xff")}}}), "[user:a\xEF\xBF\xBD]");
}

TEST(ChatTemplate, ModelAndRequestVariablesAreSet) {
  ChatTemplateSettings settings;
  settings.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  constexpr std::string_view source =
      "{{ bos_token }}{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ thinking is defined "
      "}}{{ unk_token }}";
  EXPECT_EQ(*render(source, kHello, true, nullptr, settings), "<s>NoneNoneTrueFalse");
  EXPECT_EQ(
      *render(
          "{{ add_generation_prompt }}{{ thinking }}{{ deep.a[1] }}", kHello, true,
          {{"add_generation_prompt", false}, {"thinking", nullptr}, {"deep", {{"a", {1, 2.5}}}}}),
      "FalseNone2.5");
}

TEST(ChatTemplate, ReservedVariablesAreRefused) {
  for (const char* name : {"messages", "chat_template", "tokenize"}) {
    const auto rendered = render(kString, kHello, true, {{name, "x"}});
    ASSERT_FALSE(rendered.ok()) << name;
    EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(rendered.error().param, "chat_template_kwargs");
    EXPECT_THAT(rendered.error().message, HasSubstr(name));
  }
  EXPECT_FALSE(render(kString, kHello, true, Json::array({1})).ok());
  EXPECT_EQ(*render("{{ x }}", kHello, true, {{"x", 18446744073709551615u}}),
            "18446744073709551615");
}

TEST(ChatTemplate, RaisedExceptionFailsRequest) {
  const auto rendered = render(
      "{% if messages|length > 1 %}{{ raise_exception('Only one turn!') }}{% endif %}", kMedia);
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(rendered.error().message, "Only one turn!");
  EXPECT_EQ(rendered.error().param, "messages");
  EXPECT_FALSE(render(kString, {}).ok());
}

TEST(ChatTemplate, IteratesCharactersOfLongConversation) {
  const std::string source =
      "{% for m in messages %}{% for c in m.content if c == 'x' %}{{ c }}{% endfor %}{{ m.content "
      "is string }}{% "
      "endfor %}";
  EXPECT_EQ(*render(source, {{"user", {text(std::string(400'000, 'a') + "x")}}}), "xTrue");
}

TEST(ChatTemplate, RefusalNamesTemplateAndLine) {
  const auto format = make_chat_template("\n{{ x | urlize }}", "/models/m/chat_template.jinja", {});
  ASSERT_FALSE(format.ok());
  EXPECT_EQ(format.error().code, ErrorCode::kUnprocessable);
  EXPECT_EQ(format.error().message,
            "the chat template of /models/m/chat_template.jinja: line 2: the filter 'urlize' is "
            "not supported");
}

TEST(ChatTemplate, TimeIsInjected) {
  ChatTemplateSettings settings;
  settings.now = [] {
    std::tm local{};
    local.tm_year = 124, local.tm_mon = 6, local.tm_mday = 6, local.tm_hour = 5,
    local.tm_isdst = -1;
    return std::chrono::system_clock::from_time_t(std::mktime(&local)) +
           std::chrono::microseconds(42);
  };
  EXPECT_EQ(*render("{{ strftime_now('%d %b %Y %H:%M:%S.%f %A%z%%') }}|{{ strftime_now('') }}",
                    kHello, false, nullptr, settings),
            "06 Jul 2024 05:00:00.000042 Saturday%|");
}

TEST(ChatFormats, BuiltInOnesRefuseUnknownVariables) {
  const auto format = make_chatml("");
  EXPECT_EQ(*format->render(kHello, true, nullptr),
            "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(*format->render(kHello, true, {{"add_generation_prompt", false}}),
            "<|im_start|>user\nhello<|im_end|>\n");
  const auto refused = format->render(kHello, true, {{"enable_thinking", true}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("\"enable_thinking\""));
  EXPECT_EQ(refused.error().param, "chat_template_kwargs");
  EXPECT_FALSE(format->render(kHello, true, {{"add_generation_prompt", 1}}).ok());
  EXPECT_FALSE(format->render(kHello, true, "x").ok());
}

std::string found(const valora::testing::TempDir& dir) {
  const auto source = find_chat_template(dir.path());
  if (!source.ok()) return "error: " + source.error().message;
  return *source ? (*source)->text + " of " + (*source)->path.substr(dir.path().size() + 1)
                 : "none";
}

TEST(ChatTemplateFiles, PrecedenceFollowsTransformers) {
  const valora::testing::TempDir dir;
  EXPECT_EQ(found(dir), "none");
  dir.write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(found(dir), "none");
  dir.write("tokenizer_config.json", R"({"chat_template": "t"})");
  EXPECT_EQ(found(dir), "t of tokenizer_config.json");
  dir.write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(found(dir), "d of tokenizer_config.json");
  dir.write("processor_config.json", R"({"chat_template": "p"})");
  EXPECT_EQ(found(dir), "p of processor_config.json");
  dir.write("chat_template.jinja", "j\n");
  EXPECT_EQ(found(dir), "j\n of chat_template.jinja");
  dir.write("chat_template.json", R"({"chat_template": "c"})");
  EXPECT_EQ(found(dir), "c of chat_template.json");
}

TEST(ChatTemplateFiles, MalformedFilesAreErrors) {
  for (const char* json :
       {R"({"chat_template": [{"name": "rag", "template": "r"}]})", R"({"chat_template": 5})",
        "[1]", "{", R"({"chat_template": [{"name": "default"}]})",
        R"({"chat_template": {"rag": "x"}})", R"({"chat_template": [7]})"}) {
    const valora::testing::TempDir dir;
    dir.write("tokenizer_config.json", json);
    EXPECT_THAT(found(dir), HasSubstr("error")) << json;
  }
}

TEST(ChatTemplateFiles, ReadsExplicitFile) {
  const valora::testing::TempDir dir;
  EXPECT_EQ(read_chat_template(dir.write("any.jinja", "a"))->text, "a");
  EXPECT_EQ(read_chat_template(dir.write("any.json", R"({"chat_template": "b"})"))->text, "b");
  EXPECT_FALSE(read_chat_template(dir.write("none.json", "{}")).ok());
  EXPECT_FALSE(read_chat_template(dir.file("missing")).ok());
}

TEST(ChatTemplateFiles, ReadsSpecialTokens) {
  const valora::testing::TempDir dir;
  EXPECT_EQ(*read_special_tokens(dir.path()), Json::object());
  dir.write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null,
    "extra_special_tokens": {"image_token": "<image>"}, "additional_special_tokens": ["<a>", {"content": "<b>"}], "padding_side": "left"})");
  const Json config = {{"bos_token", "<s>"},
                       {"eos_token", "</s>"},
                       {"image_token", "<image>"},
                       {"additional_special_tokens", {"<a>", "<b>"}}};
  EXPECT_EQ(*read_special_tokens(dir.path()), config);
  dir.write("special_tokens_map.json", R"({"eos_token": "<end>", "unk_token": "<unk>"})");
  EXPECT_EQ((*read_special_tokens(dir.path()))["eos_token"], "<end>");
  EXPECT_EQ((*read_special_tokens(dir.path()))["unk_token"], "<unk>");
  dir.write("tokenizer_config.json", R"({"eos_token": "</s>", "added_tokens_decoder": {}})");
  EXPECT_EQ(*read_special_tokens(dir.path()), (Json{{"eos_token", "</s>"}}));
  dir.write("tokenizer_config.json", R"({"eos_token": 7})");
  EXPECT_THAT(read_special_tokens(dir.path()).error().message, HasSubstr("\"eos_token\""));
}

}  // namespace
}  // namespace valora::text
