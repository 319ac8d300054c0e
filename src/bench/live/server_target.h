// Runs a workload on a server with OpenAI's API. The server must send token ids with its answers
// (vLLM's return_token_ids): the next turn of a conversation contains them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/live/live_target.h"
#include "bench/serve/http_client.h"

namespace valora::bench {

struct ServerAddress {
  std::string name;  // in reports
  std::string url;   // without a path
  std::string api_key;
};

class ServerTarget final : public LiveTarget {
 public:
  // base: the server's name of the model itself. timeout_seconds: per request.
  ServerTarget(const ServerAddress& address, std::string base, int timeout_seconds);
  // Ends the requests under way without calling their sinks.
  ~ServerTarget() override;
  ServerTarget(const ServerTarget&) = delete;
  ServerTarget& operator=(const ServerTarget&) = delete;

  // Prompts are token ids or chats; at most one adapter of scale 1. Tenants, shares and targets are
  // the server's matter and are not sent. Timings are those of the client: the first token is there
  // when its event has been read.
  Status submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) override;
  EngineStats stats() const override { return {}; }

 private:
  struct Call;
  void run();
  void send(const std::shared_ptr<Call>& call);

  const std::string base_;
  HttpClient client_;
  std::mutex mutex_;  // of what follows
  std::vector<std::shared_ptr<Call>> waiting_;
  bool stopping_ = false;
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace valora::bench
