// Collects the answer to one request and formats it as JSON. Thread-safe.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "api/answer.h"
#include "base/json/json.h"

namespace valora::probe {

Json error_json(const Error& error);

class ProbeSink final : public ResponseSink {
 public:
  void on_start(const Usage& usage, const PromptTokens& prompt) override;
  void on_output(OutputChunk chunk) override;
  void on_classification(Classification result) override;
  void on_done(const FinalInfo& info) override;
  void on_error(const Error& error) override;

  // Blocks until this many tokens are received (true), or the request ends before that (false).
  bool wait_for_tokens(int count);
  // Blocks until the request has ended. Returns {"choices", "prompt_token_ids", "usage",
  // "started_with", "timings", "preemptions", "classification"} or {"error"}.
  Json wait();

 private:
  void end(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Json> choices_;  // by sequence index
  Json answer_ = Json::object();
  int tokens_ = 0;
  bool ended_ = false;
};

}  // namespace valora::probe
