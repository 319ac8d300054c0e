// Parses request bodies of the endpoints that run the model. The first byte chooses the endpoint.
// Accepted values must be in the ranges that the engine expects.
#include <cmath>

#include "check.h"
#include "input.h"
#include "server/openai/requests.h"
#include "server/openai/response_input.h"

using namespace valora;
using namespace valora::server;

namespace {

constexpr MediaLimits kMedia{.images = 2, .videos = 1};

void check_prompt(const Prompt& prompt) {
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (!chat) return;
  FUZZ_CHECK(!chat->messages.empty());
  int images = 0, videos = 0;
  for (const ChatMessage& message : chat->messages) {
    FUZZ_CHECK(!message.role.empty());
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part)) {
        FUZZ_CHECK(!media->url.empty());
        ++(media->kind == MediaRef::Kind::kImage ? images : videos);
      }
  }
  FUZZ_CHECK(images <= kMedia.images && videos <= kMedia.videos);
}

void check_target(const Target& target) {
  for (const AdapterUse& use : target.lora)
    FUZZ_CHECK(!use.name.empty() && std::isfinite(use.scale));
}

void check_sampling(const SamplingParams& s) {
  FUZZ_CHECK(s.max_tokens.value_or(1) >= 1 && s.min_tokens >= 0);
  FUZZ_CHECK(s.temperature.value_or(0) >= 0 && s.temperature.value_or(0) <= 2);
  FUZZ_CHECK(s.top_p.value_or(1) > 0 && s.top_p.value_or(1) <= 1);
  FUZZ_CHECK(s.top_k.value_or(0) >= -1);
  FUZZ_CHECK(s.min_p.value_or(0) >= 0 && s.min_p.value_or(0) <= 1);
  FUZZ_CHECK(s.repetition_penalty.value_or(1) > 0 &&
             std::isfinite(s.repetition_penalty.value_or(1)));
  FUZZ_CHECK(std::abs(s.presence_penalty) <= 2 && std::abs(s.frequency_penalty) <= 2);
  FUZZ_CHECK(s.n >= 1 && s.n <= 128);
  FUZZ_CHECK(s.logprobs.value_or(0) >= 0 && s.logprobs.value_or(0) <= 20);
  FUZZ_CHECK(s.stop.size() <= 16 && s.stop_token_ids.size() <= 128);
  for (const std::string& stop : s.stop) FUZZ_CHECK(!stop.empty());
  for (const auto& [id, bias] : s.logit_bias) FUZZ_CHECK(id >= 0 && std::abs(bias) <= 100);
}

template <typename Body>
void check_prompts(const Body& body) {
  check_target(body.target);
  FUZZ_CHECK(!body.prompts.empty() && body.prompts.size() <= 1024);
  for (const Prompt& prompt : body.prompts) check_prompt(prompt);
}

void check_generation(const Result<GenerationBody>& body) {
  if (!body.ok()) return (void)Json(body.error().message).dump();
  check_prompts(*body);
  check_sampling(body->sampling);
  FUZZ_CHECK(body->stream || !body->include_usage);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint8_t endpoint = input.byte() % 6;
  const std::string_view text = input.rest();
  if (endpoint == 0) check_generation(parse_chat(text, kMedia));
  if (endpoint == 1) check_generation(parse_completion(text));
  if (endpoint == 2)
    if (const auto body = parse_classify(text, kMedia); body.ok()) check_prompts(*body);
  if (endpoint == 3)
    if (const auto body = parse_tokenize(text, kMedia); body.ok()) check_prompt(body->prompt);
  if (endpoint == 4)
    if (const auto body = parse_detokenize(text); body.ok()) check_target(body->target);
  if (endpoint == 5) {
    auto body = parse_response(text, kMedia);
    check_generation(body.ok() ? Result<GenerationBody>(std::move(body->chat)) : body.error());
  }
  return 0;
}
