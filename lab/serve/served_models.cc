#include "lab/serve/served_models.h"

#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora::bench {
namespace {

constexpr int kSampleWords = 2000;

Result<Json> ask_json(HttpClient& client, const std::string& path, const std::string& body = {}) {
  VALORA_TRY(answer, client.ask(path, body));
  if (answer.status != 200)
    return Error{
        ErrorCode::kUnavailable,
        path + " answered HTTP " + std::to_string(answer.status) + ": " + shortened(answer.body),
        path};
  VALORA_TRY(json, parse_json(answer.body, path));
  if (!json.is_object())
    return Error{ErrorCode::kUnavailable, path + " did not answer with a JSON object", path};
  return json;
}

}  // namespace

Result<ServedModels> served_models(HttpClient& client) {
  VALORA_TRY(answer, ask_json(client, "/v1/models"));
  ServedModels out;
  for (const Json& model : answer.value("data", Json::array())) {
    if (!model.is_object()) continue;
    VALORA_TRY(name, field_or<std::string>(model, "id", ""));
    const bool is_adapter = model.contains("parent") && !model["parent"].is_null();
    if (name.empty()) continue;
    if (is_adapter)
      out.adapters.push_back(name);
    else if (out.base.empty())
      out.base = name;
  }
  if (out.base.empty() && out.adapters.empty())
    return Error{ErrorCode::kUnavailable, "/v1/models lists no model", "models"};
  return out;
}

Result<PromptMaker> learn_prompts(HttpClient& client, const std::string& model, int longest_request,
                                  uint64_t seed) {
  const Json question{{"model", model},
                      {"prompt", random_words(kSampleWords, seed)},
                      {"add_special_tokens", false}};
  VALORA_TRY(answer, ask_json(client, "/tokenize", question.dump()));
  VALORA_TRY(longest, field_or<int32_t>(answer, "max_model_len", INT32_MAX));
  if (longest_request > longest)
    return invalid("prompt and answer have up to " + std::to_string(longest_request) +
                   " tokens, but the model takes at most " + std::to_string(longest) +
                   "; lower --input-tokens or --output-tokens");
  std::vector<int32_t> ids;
  for (const Json& id : answer.value("tokens", Json::array()))
    if (id.is_number_integer()) ids.push_back(id.get<int32_t>());
  return PromptMaker::make(std::move(ids), kSampleWords);
}

}  // namespace valora::bench
