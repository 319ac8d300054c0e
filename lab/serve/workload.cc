#include "lab/serve/workload.h"

#include "base/json/json.h"
#include "lab/serve/image_maker.h"
#include "lab/serve/model_mix.h"
#include "lab/serve/random.h"

namespace valora::bench {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 30;

Result<std::vector<std::string>> images_of(const ImageLoad& images, uint64_t first_seed) {
  std::vector<std::string> urls;
  for (int i = 0; i < images.count; ++i) {
    VALORA_TRY(url, random_image_url(images, first_seed + static_cast<uint64_t>(i)));
    urls.push_back(std::move(url));
  }
  return urls;
}

Json messages_of(const std::vector<std::string>& images, const std::string& text) {
  Json content = Json::array();
  for (const std::string& url : images)
    content.push_back({{"type", "image_url"}, {"image_url", {{"url", url}}}});
  content.push_back({{"type", "text"}, {"text", text}});
  return Json::array({{{"role", "user"}, {"content", std::move(content)}}});
}

Json settings_of(const ServeLoad& load, const std::string& model, int output_tokens) {
  Json body{{"model", model},
            {"max_tokens", output_tokens},
            {"temperature", 0},
            {"ignore_eos", true},
            {"stream", load.stream}};
  body["head"] = "";  // generate text even if the adapter has a classification head
  // Usage in every chunk shows which chunks have tokens.
  if (load.stream)
    body["stream_options"] = {{"include_usage", true}, {"continuous_usage_stats", true}};
  return body;
}

}  // namespace

Result<std::vector<BenchRequest>> make_requests(const ServeLoad& load,
                                                const std::vector<std::string>& models,
                                                const PromptMaker& prompts, int count,
                                                uint64_t first_seed) {
  VALORA_TRY(mix,
             mix_models(load.distribution, static_cast<int>(models.size()), count, first_seed));
  const uint64_t images_a_request = static_cast<uint64_t>(load.images.count);
  VALORA_TRY(images, images_of(load.images, load.seed));
  Random random(first_seed);
  std::vector<BenchRequest> requests;
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first_seed + 1 + static_cast<uint64_t>(i);
    BenchRequest request{.model = models[mix[i]], .output_tokens = random.in(load.output_tokens)};
    Json body = settings_of(load, request.model, request.output_tokens);
    const int input_tokens = random.in(load.input_tokens);
    if (images_a_request == 0) {
      request.path = "/v1/completions";
      body["prompt"] = prompts.ids(input_tokens, seed);
    } else {
      if (!load.images.repeat) {
        VALORA_TRY(own, images_of(load.images, seed * images_a_request));
        images = std::move(own);
      }
      request.path = "/v1/chat/completions";
      body["messages"] = messages_of(images, prompts.text(input_tokens, seed));
    }
    request.body = body.dump();
    bytes += request.body.size();
    if (bytes > kMaxBytes)
      return invalid(
          "the request bodies would take more than 4 GiB; lower --num-prompts, --images or "
          "--image-size");
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace valora::bench
