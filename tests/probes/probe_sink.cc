#include "probe_sink.h"

namespace valora::probe {
namespace {

Json token_json(const TokenOutput& token) {
  Json json{{"id", token.chosen.id}, {"logprob", token.chosen.logprob}};
  json["top_ids"] = Json::array();
  json["top_logprobs"] = Json::array();
  for (const TokenLogprob& other : token.top) {
    json["top_ids"].push_back(other.id);
    json["top_logprobs"].push_back(other.logprob);
  }
  return json;
}

Json stop_reason_json(const Finish& finish) {
  if (const auto* id = std::get_if<int32_t>(&finish.stop_reason)) return *id;
  if (const auto* text = std::get_if<std::string>(&finish.stop_reason)) return *text;
  return nullptr;
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"cached_tokens", usage.cached_tokens}};
}

}  // namespace

Json error_json(const Error& error) {
  return {{"error",
           {{"code", static_cast<int>(error.code)},
            {"message", error.message},
            {"param", error.param}}}};
}

void ProbeSink::on_start(const Usage& usage, const PromptTokens&) {
  const std::lock_guard lock(mutex_);
  answer_["started_with"] = usage_json(usage);
}

void ProbeSink::on_output(OutputChunk chunk) {
  const std::lock_guard lock(mutex_);
  Json& choice = choices_[chunk.index];
  if (choice.is_null())
    choice = {{"text", ""}, {"tokens", Json::array()}, {"finish_reason", nullptr}, {"pieces", 0}};
  choice["text"].get_ref<std::string&>() += chunk.text;
  choice["pieces"] = choice["pieces"].get<int>() + 1;
  for (const TokenOutput& token : chunk.tokens) choice["tokens"].push_back(token_json(token));
  tokens_ += static_cast<int>(chunk.tokens.size());
  if (chunk.finish) {
    choice["finish_reason"] = finish_reason_name(chunk.finish->reason);
    choice["stop_reason"] = stop_reason_json(*chunk.finish);
  }
  changed_.notify_all();
}

void ProbeSink::on_classification(Classification result) {
  const std::lock_guard lock(mutex_);
  answer_["classification"] = {{"head", result.head},
                               {"labels", result.labels},
                               {"logits", result.logits},
                               {"probs", result.probs},
                               {"best", result.best}};
}

void ProbeSink::on_done(const FinalInfo& info) {
  std::unique_lock lock(mutex_);
  answer_["usage"] = usage_json(info.usage);
  answer_["preemptions"] = info.preemptions;
  answer_["prompt_token_ids"] = info.prompt_token_ids;
  answer_["timings"] = {{"queue_seconds", info.timings.queue_seconds},
                        {"e2e_seconds", info.timings.e2e_seconds}};
  end(lock);
}

void ProbeSink::on_error(const Error& error) {
  std::unique_lock lock(mutex_);
  answer_ = error_json(error);
  end(lock);
}

void ProbeSink::end(std::unique_lock<std::mutex>& lock) {
  ended_ = true;
  lock.unlock();
  changed_.notify_all();
}

bool ProbeSink::wait_for_tokens(int count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || tokens_ >= count; });
  return !ended_;
}

Json ProbeSink::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_; });
  if (!answer_.contains("error")) {
    answer_["choices"] = Json::array();
    for (const auto& [index, choice] : choices_) answer_["choices"].push_back(choice);
  }
  return answer_;
}

}  // namespace valora::probe
