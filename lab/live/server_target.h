// Runs a workload on a server with OpenAI's API. The server must return token ids with its answers
// (vLLM's return_token_ids), because the next turn of a conversation contains them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lab/live/live_target.h"
#include "lab/serve/http_client.h"

namespace valora::bench {

struct ServerAddress {
  std::string name;  // used in reports
  std::string url;   // without a path
  std::string api_key;
};

class ServerTarget final : public LiveTarget {
 public:
  // base: the server's name for the base model. timeout_seconds: per request.
  ServerTarget(const ServerAddress& address, std::string base, int timeout_seconds);
  // Ends running requests without calling their sinks.
  ~ServerTarget() override;
  ServerTarget(const ServerTarget&) = delete;
  ServerTarget& operator=(const ServerTarget&) = delete;

  // Prompts must be token ids or chats, with at most one adapter, of scale 1. Tenants, shares and
  // targets are up to the server and are not sent. Times are the client's: the first token counts
  // when its event has been read.
  Status submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) override;
  EngineStats stats() const override { return {}; }

 private:
  struct Call;
  void run();
  void send(const std::shared_ptr<Call>& call);

  const std::string base_;
  HttpClient client_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::shared_ptr<Call>> waiting_;
  bool stopping_ = false;
  std::jthread thread_;  // declared last, because it uses the others
};

}  // namespace valora::bench
