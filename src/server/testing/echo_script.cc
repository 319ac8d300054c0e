#include "server/testing/echo_script.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::server::testing {
namespace {

using valora::testing::Reply;
using valora::testing::split_tokens;
using valora::testing::text_of;
using valora::testing::token_id;

constexpr std::string_view kHalfEuro = "\xE2\x82", kOtherHalf = "\xAC";

std::string answer_to(const GenerateRequest& request, const std::string& prompt) {
  std::string answer;
  if (prompt.find("!echo-adapters") != prompt.npos) {
    for (const AdapterUse& use : request.adapters)
      answer += fmt::format(" {}*{}", use.name, use.scale);
    return answer;
  }
  if (prompt.find("!media") == prompt.npos) return prompt;
  for (const ChatMessage& message : std::get<ChatPrompt>(request.prompt).messages)
    for (const ContentPart& part : message.parts)
      if (const auto* media = std::get_if<MediaRef>(&part))
        answer += fmt::format(" {}:{}", media->kind == MediaRef::Kind::kImage ? "image" : "video",
                              media->url.size());
  return answer;
}

std::vector<std::string> tokens_for(const GenerateRequest& request, const std::string& prompt) {
  if (prompt == "!bytes") return {std::string(kHalfEuro), std::string(kOtherHalf), " euro"};
  if (prompt == "!hang") return {"!hang", " no more"};
  if (prompt == "!flood") return {std::string(size_t{64} << 10, 'x')};
  std::vector<std::string> tokens = split_tokens(answer_to(request, prompt));
  if (tokens.empty()) tokens.emplace_back();
  return tokens;
}

// Holds back incomplete characters until they are complete.
OutputChunk chunk_of(const std::string& token, int alternatives) {
  OutputChunk chunk{.text = token == kHalfEuro ? "" : token == kOtherHalf ? "\xE2\x82\xAC" : token};
  TokenOutput output{{token_id(token), token, -0.5f}, {}};
  if (token.find('~') != token.npos) {  // a word of the thought
    std::swap(chunk.text, chunk.thought);
    chunk.thought_tokens = 1;
  }
  for (int i = 0; i < alternatives; ++i)
    output.top.push_back(
        {i, i == 0 ? token : fmt::format("alt{}", i), -0.5f - static_cast<float>(i)});
  chunk.tokens.push_back(std::move(output));
  return chunk;
}

// Log probabilities of a prompt's words: word i has log probability -i and rank i.
std::shared_ptr<const std::vector<TokenOutput>> prompt_of(const std::string& prompt, int top) {
  auto tokens = std::make_shared<std::vector<TokenOutput>>();
  for (const std::string& word : split_tokens(prompt)) {
    const int i = static_cast<int>(tokens->size());
    tokens->push_back({{token_id(word), word, -static_cast<float>(i), i}, {}});
    for (int k = 0; i > 0 && k < top; ++k)
      tokens->back().top.push_back({1000 + k, fmt::format("top{}", k), -0.5f, k + 1});
  }
  return tokens;
}

// As in an engine, a generation with a head yields one chunk without tokens: the label.
bool answers_with_label(const GenerateRequest& request) {
  return request.task == Task::kGenerate && !request.head.value_or("").empty();
}

FinalInfo info_of(const std::string& prompt) {
  FinalInfo info;
  const int tokens = static_cast<int>(std::max<size_t>(1, split_tokens(prompt).size()));
  info.usage = {tokens, 0, 2};
  info.timings = {.queue_seconds = 0.1,
                  .adapter_seconds = 0.2,
                  .kv_seconds = 0.3,
                  .prefill_seconds = 0.3,
                  .decode_seconds = 0.6,
                  .ttft_seconds = 0.4,
                  .e2e_seconds = 1};
  for (int i = 0; i < tokens; ++i) info.prompt_token_ids.push_back(i);
  return info;
}

}  // namespace

Reply echo(const GenerateRequest& request) {
  const std::string prompt = text_of(request.prompt);
  Reply reply{.chunks = {}, .info = info_of(prompt)};
  if (prompt == "!fail-now" || prompt.starts_with("!fail "))
    reply.error = invalid("this prompt fails", "messages");
  if (prompt == "!fail-now") return reply;
  if (request.task == Task::kClassify || answers_with_label(request)) {
    reply.classification = Classification{.head = request.head.value_or("default"),
                                          .labels = {"cat", "dog", "owl"},
                                          .logits = {0.0f, 2.0f, 1.0f},
                                          .probs = {0.125f, 0.625f, 0.25f},
                                          .best = 1};
    if (request.task == Task::kGenerate)
      reply.chunks.push_back({.text = "dog", .finish = Finish{FinishReason::kStop, {}}});
    return reply;
  }
  if (request.task == Task::kEmbed) {
    const auto length = static_cast<float>(prompt.size());
    reply.embedding = std::vector<float>{length, -2 * length, 2 * length};
    return reply;
  }
  std::vector<std::string> tokens = tokens_for(request, prompt);
  const size_t most =
      reply.error ? 2 : static_cast<size_t>(request.sampling.max_tokens.value_or(1000));
  const bool cut = tokens.size() > most;
  if (cut) tokens.resize(most);
  for (const std::string& token : tokens)
    reply.chunks.push_back(chunk_of(token, request.sampling.logprobs.value_or(0)));
  if (reply.chunks.empty()) reply.chunks.emplace_back();  // only the end
  if (const auto top = request.sampling.prompt_logprobs)
    reply.chunks.front().prompt = prompt_of(prompt, *top);
  reply.endless = prompt == "!flood";
  if (prompt == "!hang") reply.hangs_after = 1;
  if (reply.endless || reply.error) return reply;
  Finish finish{cut ? FinishReason::kLength : FinishReason::kStop, {}};
  if (!cut) finish.stop_reason = int32_t{7};
  if (prompt != "!unfinished") reply.chunks.back().finish = finish;
  return reply;
}

valora::testing::FakeOptions echo_options(size_t max_queued) {
  valora::testing::FakeOptions options{.script = echo, .max_queued = max_queued};
  options.model.media_limits = {.images = 4, .videos = 999};
  return options;
}

}  // namespace valora::server::testing
