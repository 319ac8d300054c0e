// The HTTP server: OpenAI's API, the adapter endpoints and metrics over an Engine.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/engine.h"
#include "api/options.h"
#include "base/result.h"
#include "server/applications/application.h"
#include "server/batches/batch_store.h"
#include "server/page/samples.h"
#include "server/uploads/upload_store.h"
#include "server/users/user.h"
#include "streams/mqtt/mqtt_broker.h"
#include "streams/stream_set.h"

namespace valora::server {

// Limits of one connection and of all connections together. Comments give the HTTP status sent when
// a limit is exceeded.
struct HttpLimits {
  size_t max_connections = 8192;  // 503, then closed
  // extra connections that may only request status pages (/health, /metrics), so that these respond
  // even if clients hold all others
  size_t status_connections = 64;
  size_t max_header_bytes = size_t{32} << 10;  // 431
  size_t max_target_bytes = size_t{8} << 10;   // 414
  // 413; Content-Length is checked before the body is read
  size_t max_body_bytes = size_t{64} << 20;
  // 503; total of all requests whose media are not decoded yet
  size_t max_total_body_bytes = size_t{1} << 30;
  // 429; bytes received of one client's (address's) incomplete bodies
  size_t max_unfinished_body_bytes = size_t{256} << 20;
  // unsent bytes of one stream; beyond it the request is cancelled
  size_t max_outbound_bytes = size_t{4} << 20;
  // 503; unsent bytes of all connections together; beyond it streams are cancelled
  size_t max_total_outbound_bytes = size_t{512} << 20;
  // from the first byte to the end of the header
  std::chrono::milliseconds header_timeout{10'000};
  std::chrono::milliseconds body_idle_timeout{60'000};  // between two reads of a body
  // for a whole body, plus one second for every min_body_rate bytes received
  std::chrono::milliseconds body_timeout{60'000};
  size_t min_body_rate = size_t{64} << 10;
  std::chrono::milliseconds keep_alive_timeout{75'000};  // between requests, and before the first
  // the connection is closed if the peer accepts no bytes for this long
  std::chrono::milliseconds write_timeout{60'000};
};

// PEM files. TLS is on if a certificate is given.
struct TlsOptions {
  enum class ClientCertificates { kIgnored, kOptional, kRequired };

  std::string certificate_file;  // with its chain
  std::string key_file;          // empty: the key is in certificate_file
  std::string client_ca_file;    // CAs that sign client certificates
  ClientCertificates client_certificates = ClientCertificates::kIgnored;

  bool on() const { return !certificate_file.empty(); }
};

// The adapters of chats that contain media of a kind but name no adapter; empty: the base model.
struct DefaultAdapters {
  std::string image;
  std::string video;
};

struct ServerOptions {
  // address or name; if a name has several addresses, the first that can be bound
  std::string host = "127.0.0.1";
  uint16_t port = 8000;      // 0: any free port, see Server::port()
  std::string uds;           // path of a Unix domain socket, instead of host and port; empty: none
  unsigned uds_mode = 0660;  // of the socket file
  TlsOptions tls;
  // a proxy's path prefix, such as "/models/a"; requests may include it or not
  std::string root_path;
  int io_threads = 2;
  int handler_threads = 2;  // handlers parse bodies, so that a large one does not delay streams
  HttpLimits limits;
  // a drain stops the server after this time even if requests still run; 0: waits for them
  std::chrono::milliseconds drain_timeout{0};

  // clients send "Authorization: Bearer KEY"; empty: no authentication
  std::vector<std::string> api_keys;
  std::vector<User> users;                 // as from read_users(); their keys are API keys too
  std::vector<std::string> allowed_hosts;  // in the Host header (host_allowed()); empty: any
  std::vector<std::string> cors_allowed_origins;  // "*": any; empty: no CORS headers

  bool trust_request_chat_template = false;  // requests may bring their own chat template
  bool ollama_api = false;                   // Ollama's API below "/api/"
  bool page = true;                          // the page at "/", its files below "/ui/", and "/docs"
  std::vector<Sample> samples;               // that the page offers, as from read_samples()
  // recognise special tokens in the texts of conversations: !ChatPrompt::plain_texts
  bool special_tokens_in_content = true;
  std::optional<std::string> tokenizer_info = {};  // JSON of /tokenizer_info; absent: no such page
  std::vector<std::string> served_model_names;     // of the base model; empty: ModelCard::name
  DefaultAdapters default_adapters;
  bool allow_runtime_lora_updating = false;  // /v1/load_lora_adapter and /v1/unload_lora_adapter
  // /v1/load_lora_adapter accepts only folders inside these, with links resolved; empty: any folder
  std::vector<std::string> allowed_lora_paths;
  // where uploaded adapters are stored (UploadStore::prepare()); empty: no uploads
  std::string adapter_upload_dir;
  UploadLimits uploads;
  // where files and batches are kept (BatchStore::open()); empty: neither /v1/files nor /v1/batches
  std::string batches_dir;
  BatchLimits batches;
  // where streams are kept (streams::StreamSet::open()); empty: no /v1/streams
  std::string streams_dir;
  streams::StreamLimits streams;
  streams::MqttSettings mqtt;  // of the broker that streams are published to
  MediaAccess media;           // of the sources of streams, and their webhooks: that of the engine
  std::shared_ptr<const media::HardwareDevice> video_decoder;  // of streams; null: software
  // directory in which an unknown model name is looked up as an adapter folder; empty: off
  std::string lora_resolver_dir;
  // 429; choices waiting: n times the prompts of each request that the engine has not started
  int max_waiting = 1024;
  // how answers write tool calls; nullopt: as ModelCard::tool_calls says
  std::optional<ToolCallStyle> tool_call_style = {};
  // 503; text and tokens of all incomplete answers that are not streamed
  size_t max_unsent_answer_bytes = size_t{256} << 20;
  int max_loras = 0;                      // most adapters per batch, for vllm:lora_requests_info
  std::vector<Application> applications;  // as from read_applications()
  // with users or applications: requests may have any priority, not only their default or a lower
  // one
  bool allow_any_priority = false;
};

// kInvalidArgument for options that start() would reject. Reads certificates, binds nothing.
Status check(const ServerOptions& options);

// Runs from listen() until stop(), the end of a drain() or the destructor. The engine must outlive
// it. All methods are thread-safe, except that serve() must be called once, before drain() and
// watch_signals().
class Server {
 public:
  // Binds, listens and starts the threads. Until serve(), every request is answered with 503,
  // except for the page and /version. kInvalidArgument: invalid options, or the host can't be
  // resolved. kUnavailable: the address can't be bound.
  static Result<std::unique_ptr<Server>> listen(ServerOptions options);
  // Starts serving this engine. kInvalidArgument: a default adapter is not loaded.
  Status serve(Engine& engine);
  // listen() and serve().
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Engine& engine);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;
  // "http://127.0.0.1:8000", with https if TLS is on, or "unix:" and the path
  std::string url() const;

  // Rejects new requests (503, also on /health), lets running ones finish, then stops the server.
  // Returns at once.
  void drain();
  // Closes every connection and cancels its requests. Returns when the server's threads have ended.
  void stop();
  // From now on SIGTERM or SIGINT starts a drain, and a second one stops at once; SIGHUP, SIGUSR1
  // and SIGUSR2 are ignored. Called at most once.
  void watch_signals();
  // Blocks until the server has stopped.
  void run_until_stopped();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace valora::server
