// The HTTP server: the OpenAI surface, adapter endpoints and metrics over an Engine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"

namespace valora::server {

// What one connection, and all of them together, may take.
struct HttpLimits {
  size_t max_connections = 8192;               // one more is answered 503 and closed
  size_t max_header_bytes = size_t{32} << 10;  // 431
  size_t max_target_bytes = size_t{8} << 10;   // 414
  size_t max_body_bytes = size_t{64} << 20;    // 413, by Content-Length before anything is read
  size_t max_total_body_bytes = size_t{1}
                                << 30;  // of all requests read but not yet prepared; 503 above
  size_t max_outbound_bytes = size_t{4}
                              << 20;  // unsent bytes of one stream; above, its request is cancelled
  std::chrono::milliseconds header_timeout{10'000};      // first byte to the header's end
  std::chrono::milliseconds body_idle_timeout{60'000};   // between two reads of a body
  std::chrono::milliseconds keep_alive_timeout{75'000};  // between requests, and before the first
  std::chrono::milliseconds write_timeout{
      60'000};  // a peer that takes no byte for so long is dropped
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address or a name; several addresses: the first that binds
  uint16_t port = 8000;            // 0: a free one, see Server::port()
  int io_threads = 2;
  int handler_threads = 2;  // parse bodies and submit, so that a large body delays no stream
  HttpLimits limits;

  std::vector<std::string>
      api_keys;  // empty: open. Else "Authorization: Bearer KEY" where it matters
  std::vector<std::string> cors_allowed_origins;  // "*": any; empty: no CORS headers

  std::vector<std::string> served_model_names;  // of the base model; empty: ModelCard::name
  bool allow_runtime_lora_updating = false;     // /v1/load_lora_adapter and /v1/unload_lora_adapter
  std::string
      lora_resolver_dir;  // an unknown model is tried as a folder of that name in it; "": off
  int max_loras = 0;      // adapters a batch may mix, for vllm:lora_requests_info
};

// Serves from start() until the first of stop(), a finished drain() and the destructor. The engine
// must outlive it. All methods are thread-safe.
class Server {
 public:
  // Binds, listens and starts the threads. kInvalidArgument: options that make no sense;
  // kUnavailable: the address can't be bound.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Engine& engine);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8000"

  // Takes no new requests (503, also on /health), lets running ones finish, then the server stops.
  // Returns at once.
  void drain();
  // Closes every connection and cancels its requests; returns when the server's threads have ended.
  void stop();
  // Blocks until the server has stopped. With signals: SIGTERM or SIGINT drains, a second one stops
  // at once.
  void run_until_stopped(bool handle_signals = true);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::server
