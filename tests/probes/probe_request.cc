#include "probe_request.h"

namespace valora::probe {
namespace {

template <typename T>
Status read_into(const Json& json, const char* key, T& value) {
  VALORA_TRY(given, field_or<T>(json, key, value));
  value = given;
  return {};
}

template <typename T>
Status read_into(const Json& json, const char* key, std::optional<T>& value) {
  VALORA_TRY(given, optional_field<T>(json, key));
  value = given;
  return {};
}

Result<SamplingParams> read_sampling(const Json& json) {
  SamplingParams s;
  VALORA_CHECK(read_into(json, "max_tokens", s.max_tokens));
  VALORA_CHECK(read_into(json, "min_tokens", s.min_tokens));
  VALORA_CHECK(read_into(json, "temperature", s.temperature));
  VALORA_CHECK(read_into(json, "top_p", s.top_p));
  VALORA_CHECK(read_into(json, "top_k", s.top_k));
  VALORA_CHECK(read_into(json, "min_p", s.min_p));
  VALORA_CHECK(read_into(json, "repetition_penalty", s.repetition_penalty));
  VALORA_CHECK(read_into(json, "presence_penalty", s.presence_penalty));
  VALORA_CHECK(read_into(json, "frequency_penalty", s.frequency_penalty));
  VALORA_CHECK(read_into(json, "seed", s.seed));
  VALORA_CHECK(read_into(json, "n", s.n));
  VALORA_CHECK(read_into(json, "include_stop_str_in_output", s.include_stop_str_in_output));
  VALORA_CHECK(read_into(json, "ignore_eos", s.ignore_eos));
  VALORA_CHECK(read_into(json, "skip_special_tokens", s.skip_special_tokens));
  VALORA_CHECK(read_into(json, "logprobs", s.logprobs));
  for (const Json& pair : json.value("logit_bias", Json::array()))
    s.logit_bias.emplace_back(pair.at(0).get<int32_t>(), pair.at(1).get<float>());
  s.stop = json.value("stop", s.stop);
  s.stop_token_ids = json.value("stop_token_ids", s.stop_token_ids);
  s.bad_words = json.value("bad_words", s.bad_words);
  s.allowed_token_ids = json.value("allowed_token_ids", s.allowed_token_ids);
  return s;
}

ContentPart read_part(const Json& part) {
  if (part.is_string()) return part.get<std::string>();
  if (part.contains("image"))
    return MediaRef{MediaRef::Kind::kImage, part.at("image").get<std::string>()};
  MediaRef video{MediaRef::Kind::kVideo, part.at("video").get<std::string>()};
  if (part.contains("sample_fps")) video.settings.sample_fps = part.at("sample_fps").get<double>();
  return video;
}

Prompt read_prompt(const Json& json) {
  if (json.contains("prompt")) return json.at("prompt").get<std::string>();
  if (json.contains("tokens")) return json.at("tokens").get<std::vector<int32_t>>();
  ChatPrompt chat;
  for (const Json& message : json.at("messages")) {
    ChatMessage out{message.at("role").get<std::string>(), {}};
    const Json& content = message.at("content");
    for (const Json& part : content.is_array() ? content : Json::array({content}))
      out.parts.push_back(read_part(part));
    chat.messages.push_back(std::move(out));
  }
  chat.template_variables = json.value("template_variables", Json());
  if (json.contains("fps")) chat.media_settings.fps = json.at("fps").get<double>();
  if (json.contains("add_generation_prompt"))
    chat.add_generation_prompt = json.at("add_generation_prompt").get<bool>();
  return chat;
}

}  // namespace

Result<GenerateRequest> read_request(const Json& json) {
  try {
    GenerateRequest request;
    request.prompt = read_prompt(json);
    for (const Json& use : json.value("adapters", Json::array()))
      request.adapters.push_back({use.at("name").get<std::string>(), use.value("scale", 1.0f)});
    VALORA_TRY(sampling, read_sampling(json.value("sampling", Json::object())));
    request.sampling = std::move(sampling);
    if (json.value("task", "generate") == "classify") request.task = Task::kClassify;
    VALORA_CHECK(read_into(json, "head", request.head));
    if (json.contains("choice"))
      request.constraint = {AnswerConstraint::Kind::kChoice,
                            {},
                            json.at("choice").get<std::vector<std::string>>(),
                            true,
                            "choice"};
    return request;
  } catch (const Json::exception& e) {
    return invalid(std::string("the request: ") + e.what());
  }
}

}  // namespace valora::probe
