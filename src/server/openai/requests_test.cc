#include "server/openai/requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace valora::server {
namespace {

constexpr const char* kMessages = R"("messages":[{"role":"user","content":"hi"}])";

Result<GenerationBody> chat(const std::string& fields) {
  return parse_chat("{" + std::string(kMessages) + (fields.empty() ? "" : ",") + fields + "}", {});
}
Result<GenerationBody> completion(const std::string& fields) {
  return parse_completion(R"({"prompt":"hi")" + std::string(fields.empty() ? "" : ",") + fields +
                          "}");
}

TEST(ParseChat, ReadsEverySamplingField) {
  const auto body =
      chat(R"("model":"m","max_tokens":5,"max_completion_tokens":7,"min_tokens":2,"temperature":0.5,
    "top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":-2,"frequency_penalty":2,
    "logit_bias":{"12":-100,"7":1.5},"seed":-9007199254740993,"n":3,"stop":["a","b"],"stop_token_ids":[1,2],
    "include_stop_str_in_output":true,"ignore_eos":true,"skip_special_tokens":false,"logprobs":true,
    "top_logprobs":4,"head":"h","stream":true,
    "stream_options":{"include_usage":true,"continuous_usage_stats":true},
    "lora":[{"id":"a","scale":0.5},{"name":"b"}],"unknown_field":{"x":1})");
  ASSERT_TRUE(body.ok()) << body.error().message;
  const GenerationBody& b = body.value();
  const SamplingParams& s = b.sampling;
  EXPECT_EQ(s.max_tokens, 7);
  EXPECT_EQ(s.min_tokens, 2);
  EXPECT_EQ(s.temperature, 0.5);
  EXPECT_EQ(s.top_p, 0.9);
  EXPECT_EQ(s.top_k, 40);
  EXPECT_EQ(s.min_p, 0.1);
  EXPECT_EQ(s.repetition_penalty, 1.1);
  EXPECT_EQ(s.presence_penalty, -2);
  EXPECT_EQ(s.frequency_penalty, 2);
  EXPECT_EQ(s.logit_bias, (std::vector<std::pair<int32_t, float>>{{12, -100.f}, {7, 1.5f}}));
  EXPECT_EQ(s.seed, -9007199254740993);
  EXPECT_EQ(s.n, 3);
  EXPECT_EQ(s.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(s.stop_token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_TRUE(s.include_stop_str_in_output && s.ignore_eos && !s.skip_special_tokens);
  EXPECT_EQ(s.logprobs, 4);
  EXPECT_TRUE(b.logprobs && b.stream && b.include_usage && b.continuous_usage);
  EXPECT_EQ(b.target.model, "m");
  EXPECT_EQ(b.target.head, "h");
  ASSERT_EQ(b.target.lora.size(), 2u);
  EXPECT_EQ(b.target.lora[0].name, "a");
  EXPECT_EQ(b.target.lora[0].scale, 0.5f);
  EXPECT_EQ(b.target.lora[1].scale, 1.0f);
}

TEST(ParseChat, LeavesAbsentAndNullFieldsToTheEngine) {
  for (const char* fields :
       {"", R"("temperature":null,"top_p":null,"max_tokens":null,"stop":null,"seed":null,"n":null,
      "logprobs":null,"top_logprobs":null,"stream":null,"stream_options":null,"logit_bias":null,
      "model":null,"lora":null)"}) {
    const auto body = chat(fields);
    ASSERT_TRUE(body.ok()) << body.error().message;
    const SamplingParams& s = body.value().sampling;
    EXPECT_FALSE(s.temperature || s.top_p || s.max_tokens || s.seed || s.logprobs || s.min_p ||
                 s.repetition_penalty);
    EXPECT_EQ(s.n, 1);
    EXPECT_TRUE(s.stop.empty() && s.skip_special_tokens);
    EXPECT_FALSE(body.value().stream || body.value().logprobs);
  }
}

TEST(ParseChat, AcceptsValuesAtTheLimits) {
  for (const char* fields :
       {R"("temperature":0)", R"("temperature":2)", R"("top_p":1)", R"("top_p":0)", R"("top_k":-1)",
        R"("top_k":0)", R"("min_p":0)", R"("min_p":1)", R"("n":128)",
        R"("logprobs":true,"top_logprobs":20)", R"("stop":"x")", R"("logit_bias":{"0":100})",
        R"("seed":9223372036854775807)"})
    EXPECT_TRUE(chat(fields).ok()) << fields;
}

struct BadField {
  const char* fields;
  const char* param;
};

class BadChatField : public ::testing::TestWithParam<BadField> {};

TEST_P(BadChatField, Is400NamingTheField) {
  const auto body = chat(GetParam().fields);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(body.error().param, GetParam().param) << body.error().message;
}

const std::string kLongStopText = R"("stop":["a",")" + std::string(1025, 'x') + "\"]";
const char* const kLongStop = kLongStopText.c_str();

INSTANTIATE_TEST_SUITE_P(
    Ranges, BadChatField,
    ::testing::Values(
        BadField{R"("temperature":-0.1)", "temperature"},
        BadField{R"("temperature":2.1)", "temperature"},
        BadField{R"("temperature":"hot")", "temperature"}, BadField{R"("top_p":-0.01)", "top_p"},
        BadField{R"("top_p":1.01)", "top_p"}, BadField{R"("top_k":-2)", "top_k"},
        BadField{R"("top_k":1.5)", "top_k"}, BadField{R"("min_p":1.1)", "min_p"},
        BadField{R"("repetition_penalty":0)", "repetition_penalty"},
        BadField{R"("presence_penalty":2.5)", "presence_penalty"},
        BadField{R"("frequency_penalty":-2.5)", "frequency_penalty"}, BadField{R"("n":0)", "n"},
        BadField{R"("n":129)", "n"}, BadField{R"("max_tokens":0)", "max_tokens"},
        BadField{R"("max_completion_tokens":0)", "max_completion_tokens"},
        BadField{R"("max_tokens":99999999999)", "max_tokens"},
        BadField{R"("min_tokens":-1)", "min_tokens"}, BadField{R"("seed":1.5)", "seed"},
        BadField{R"("seed":9223372036854775808)", "seed"}, BadField{R"("stop":7)", "stop"},
        BadField{R"("stop":["a",1])", "stop"}, BadField{R"("stop":"")", "stop"},
        BadField{
            R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
            "stop"},
        BadField{kLongStop, "stop"}, BadField{R"("stop_token_ids":["a"])", "stop_token_ids"},
        BadField{R"("stop_token_ids":5)", "stop_token_ids"},
        BadField{R"("logit_bias":{"x":1})", "logit_bias"},
        BadField{R"("logit_bias":{"1":101})", "logit_bias"},
        BadField{R"("logit_bias":{"-1":1})", "logit_bias"},
        BadField{R"("logit_bias":[1])", "logit_bias"}, BadField{R"("logprobs":3)", "logprobs"},
        BadField{R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
        BadField{R"("top_logprobs":1)", "top_logprobs"}, BadField{R"("stream":"yes")", "stream"},
        BadField{R"("stream_options":{"include_usage":true})", "stream_options"},
        BadField{R"("stream":true,"stream_options":[])", "stream_options"},
        BadField{R"("stream":true,"stream_options":{"include_usage":1})", "include_usage"},
        BadField{R"("model":5)", "model"}, BadField{R"("lora":{})", "lora"},
        BadField{R"("lora":[{"id":0}])", "lora"}, BadField{R"("lora":[{"name":""}])", "lora"},
        BadField{R"("lora":[{"name":"a","scale":"x"}])", "lora"},
        BadField{R"("lora":[{"name":"a","scale":1e300}])", "lora"},
        BadField{R"("lora":[{"name":"a","scale":1e38}])", "lora"},
        BadField{R"("lora":[{"name":"a","scale":-1000.5}])", "lora"},
        BadField{R"("lora":[{"name":"a"},{"name":"a"}])", "lora"}, BadField{R"("head":1)", "head"},
        BadField{R"("response_format":"json")", "response_format"},
        BadField{R"("response_format":{"type":"json_schema"})", "response_format"},
        BadField{R"("tool_choice":5)", "tool_choice"},
        BadField{R"("allowed_token_ids":[])", "allowed_token_ids"},
        BadField{R"("bad_words":[""])", "bad_words"},
        BadField{R"("truncate_prompt_tokens":0)", "truncate_prompt_tokens"},
        BadField{R"("tool_choice":"required")", "tool_choice"},
        BadField{R"("tool_choice":{"type":"function"})", "tool_choice"},
        BadField{R"("add_generation_prompt":"no")", "add_generation_prompt"}));

// Every prompt and sequence of a request holds a copy, so a small body could take gigabytes.
TEST(ParseChat, LimitsStopStringsAndBiases) {
  const std::string accents = fmt::format("{:\xC3\xA9^{}}", "", 1024);  // 2,048 bytes
  EXPECT_TRUE(chat(R"("stop":")" + accents + "\"").ok());
  std::string sixteen = "\"" + accents + "\"";
  for (int i = 1; i < 16; ++i) sixteen += ",\"" + accents + "\"";
  EXPECT_TRUE(chat(R"("stop":[)" + sixteen + "]").ok());
  const auto biases = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += fmt::format(R"({}"{}":1)", i ? "," : "", i);
    return chat(R"("logit_bias":{)" + list + "}");
  };
  EXPECT_TRUE(biases(1024).ok());
  EXPECT_EQ(biases(1025).error().param, "logit_bias");
  const auto choices = [](int prompts, int n) {
    std::string list = R"("x")";
    for (int i = 1; i < prompts; ++i) list += R"(,"x")";
    return parse_completion(fmt::format(R"({{"prompt":[{}],"n":{}}})", list, n));
  };
  EXPECT_TRUE(choices(8, 128).ok());
  EXPECT_EQ(choices(9, 128).error().param, "n");
  EXPECT_TRUE(choices(1024, 1).ok());
}

// All names are compared pairwise: without a limit, a body of a few megabytes would take minutes.
TEST(ParseChat, LimitsTheNumberOfAdapters) {
  const auto listing = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += fmt::format(R"({}{{"name":"a{}"}})", i ? "," : "", i);
    return chat(R"("lora":[)" + list + "]");
  };
  EXPECT_TRUE(listing(64).ok());
  EXPECT_EQ(listing(65).error().param, "lora");
}

class UnsupportedField : public ::testing::TestWithParam<BadField> {};

TEST_P(UnsupportedField, IsNotImplementedAndNamesTheField) {
  const auto body = chat(GetParam().fields);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, ErrorCode::kNotImplemented);
  EXPECT_EQ(body.error().param, GetParam().param);
  EXPECT_NE(body.error().message.find(GetParam().param), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, UnsupportedField,
    ::testing::Values(BadField{R"("tools":[{"type":"web_search"}])", "tools"},
                      BadField{R"("functions":[{}])", "functions"},
                      BadField{R"("response_format":{"type":"table"})", "response_format"},
                      BadField{R"("audio":{"voice":"x"})", "audio"},
                      BadField{R"("modalities":["text","audio"])", "modalities"},
                      BadField{R"("echo":true)", "echo"}, BadField{R"("best_of":3)", "best_of"},
                      BadField{R"("suffix":"x")", "suffix"},
                      BadField{R"("use_beam_search":true)", "use_beam_search"},
                      BadField{R"("structured_outputs":{"regex":"a","whitespace_pattern":"b"})",
                               "structured_outputs"},
                      BadField{R"("chat_template":"x")", "chat_template"},
                      BadField{R"("mm_processor_kwargs":{"a":1})", "mm_processor_kwargs"},
                      BadField{R"("add_special_tokens":true)", "add_special_tokens"}));

TEST(ParseChat, IgnoresHarmlessFields) {
  const auto body =
      chat(R"("user":"u","metadata":{"a":"b"},"store":true,"service_tier":"auto","tools":[],
    "tool_choice":"auto","parallel_tool_calls":true,"functions":null,"response_format":{"type":"text"},
    "modalities":["text"],"best_of":1,"echo":false,"suffix":null,"chat_template_kwargs":{},"function_call":"auto")");
  EXPECT_TRUE(body.ok()) << body.error().message;
  EXPECT_TRUE(chat(R"("tools":null,"tool_choice":null)").ok());
}

TEST(ParseBody, RefusesNonObjectsAndDeepNesting) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("{\"a\":1e999}"), std::string(100'000, '['),
        R"({"messages":)" + std::string(100'000, '[') + "}", std::string("{\"a\":\"\xFF\"}")}) {
    const auto body = parse_chat(text, {});
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(body.error().code, ErrorCode::kInvalidArgument) << text.substr(0, 40);
    EXPECT_LT(body.error().message.size(), 1000u);
  }
}

TEST(ParseBody, RefusesTooManyTinyValues) {
  std::string text = R"({"messages":[0)";
  for (int i = 0; i < (1 << 20) + 1; ++i) text += ",0";
  const auto body = parse_chat(text + "]}", {});
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, ErrorCode::kInvalidArgument);
}

TEST(ParseChat, AcceptsTemplateVariables) {
  const auto variables = [](const char* value) {
    return chat(R"("chat_template_kwargs":)" + std::string(value));
  };
  EXPECT_EQ(std::get<ChatPrompt>(variables(R"({"a":[1]})")->prompts.at(0)).template_variables,
            Json({{"a", {1}}}));
  EXPECT_TRUE(std::get<ChatPrompt>(variables("null")->prompts.at(0)).template_variables.is_null());
  EXPECT_EQ(variables("[1]").error().param, "chat_template_kwargs");
}

TEST(ParseCompletion, AcceptsAllFourKindsOfPrompt) {
  const auto prompts = [](const std::string& value) {
    return parse_completion(R"({"prompt":)" + value + "}");
  };
  EXPECT_EQ(std::get<std::string>(prompts(R"("a")")->prompts.at(0)), "a");
  EXPECT_EQ(std::get<std::string>(prompts(R"(["a","b"])")->prompts.at(1)), "b");
  EXPECT_EQ(std::get<std::vector<int32_t>>(prompts("[1,2]")->prompts.at(0)),
            (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(std::get<std::vector<int32_t>>(prompts("[[1],[2,3]]")->prompts.at(1)),
            (std::vector<int32_t>{2, 3}));
  for (const char* bad :
       {"[]", "{}", "7", "null", "[1,\"a\"]", "[\"a\",1]", "[1.5]", "[99999999999]", "[[\"a\"]]"}) {
    const auto refused = prompts(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_TRUE(refused.error().param.starts_with("prompt")) << bad;
  }
}

TEST(ParseCompletion, RefusesTemplateVariablesWithoutMessages) {
  EXPECT_EQ(completion(R"("chat_template_kwargs":{"a":1})").error().param, "chat_template_kwargs");
  EXPECT_TRUE(completion(R"("chat_template_kwargs":{})").ok());
  EXPECT_EQ(parse_classify(R"({"input":"x","chat_template_kwargs":{"a":1}})", {}).error().param,
            "chat_template_kwargs");
}

TEST(ParseCompletion, HasItsOwnDefaultsAndLogprobs) {
  EXPECT_EQ(completion("")->sampling.max_tokens, 16);
  EXPECT_EQ(completion(R"("logprobs":0)")->sampling.logprobs, 0);
  EXPECT_TRUE(completion(R"("logprobs":0)")->logprobs);
  EXPECT_FALSE(completion(R"("logprobs":null)")->logprobs);
  EXPECT_EQ(completion(R"("logprobs":21)").error().param, "logprobs");
  EXPECT_EQ(completion(R"("logprobs":true)").error().param, "logprobs");
  EXPECT_TRUE(completion(R"("echo":true)")->echo);
  const auto scored = completion(R"("echo":true,"logprobs":2)");
  ASSERT_TRUE(scored.ok());
  EXPECT_EQ(scored->sampling.prompt_logprobs, 2);
  EXPECT_FALSE(scored->prompt_logprobs);
  EXPECT_FALSE(completion(R"("logprobs":2)")->sampling.prompt_logprobs);
  EXPECT_EQ(completion(R"("best_of":2,"n":2)")->sampling.n, 2);
}

TEST(ParseClassify, AcceptsInputsOrMessages) {
  const auto inputs =
      parse_classify(R"({"model":"a","input":["x","y"],"use_activation":false,"head":"h"})", {});
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ(inputs.value().prompts.size(), 2u);
  EXPECT_FALSE(inputs.value().use_activation);
  EXPECT_EQ(inputs.value().target.head, "h");
  const auto chat =
      parse_classify(std::string("{") + kMessages + R"(,"add_generation_prompt":false})", {});
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(std::get<ChatPrompt>(chat.value().prompts[0]).add_generation_prompt, false);
  EXPECT_EQ(parse_classify("{}", {}).error().param, "input");
}

TEST(ParseTokenize, AcceptsAPromptOrMessages) {
  const auto plain = parse_tokenize(R"({"prompt":"x","add_special_tokens":false})", {});
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain.value().add_special_tokens);
  const auto chat = parse_tokenize(std::string("{") + kMessages + "}", {});
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(std::get<ChatPrompt>(chat.value().prompt).add_generation_prompt, true);
  EXPECT_EQ(parse_tokenize("{}", {}).error().param, "prompt");
  EXPECT_EQ(parse_detokenize(R"({"tokens":[1,2]})")->tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(parse_detokenize("{}").error().param, "tokens");
}

TEST(ParseCompletion, LimitsFieldsCopiedToEveryPrompt) {
  const auto with = [](int prompts, const std::string& field, const std::string& value) {
    std::string list = "\"x\"";
    for (int i = 1; i < prompts; ++i) list += ",\"x\"";
    return parse_completion(fmt::format(R"({{"prompt":[{}],"{}":{}}})", list, field, value));
  };
  std::string ids = "[0";
  for (int i = 1; i < 100'000; ++i) ids += ",0";
  const std::string pattern = '"' + std::string(size_t{1} << 20, 'a') + '"';
  for (const auto& [field, value] :
       {std::pair<std::string, std::string>{"allowed_token_ids", ids + "]"},
        {"guided_regex", pattern}}) {
    EXPECT_TRUE(with(1, field, value).ok()) << field;
    EXPECT_TRUE(with(50, field, value).ok()) << field;
    const auto refused = with(1024, field, value);
    ASSERT_FALSE(refused.ok()) << field;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, field);
  }
}

}  // namespace
}  // namespace valora::server
