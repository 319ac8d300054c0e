#include "server/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/text/strings.h"
#include "server/batches/batch_metrics.h"
#include "server/batches/batch_runner.h"
#include "server/handlers/adapters/default_adapter.h"
#include "server/handlers/app.h"
#include "server/handlers/batches/ask_row.h"
#include "server/handlers/batches/batch_access.h"
#include "server/handlers/service.h"
#include "server/handlers/starting_app.h"
#include "server/handlers/status/stats_ticker.h"
#include "server/handlers/streams/stream_asker.h"
#include "server/handlers/streams/stream_metrics.h"
#include "server/http/allowed_hosts.h"
#include "server/http/http_server.h"
#include "server/tls/tls_contexts.h"
#include "streams/mqtt/mqtt_output.h"

namespace valora::server {
namespace {

HttpServerOptions http_options(const ServerOptions& options) {
  return {options.host,   options.port, options.io_threads, options.handler_threads,
          options.limits, options.uds,  options.uds_mode,   options.tls};
}

Status check_applications_of_users(const ServerOptions& options) {
  for (const User& user : options.users)
    for (const std::string& name : user.applications.value_or(std::vector<std::string>()))
      if (std::ranges::find(options.applications, name, &Application::name) ==
          options.applications.end())
        return invalid(fmt::format("the user \"{}\" has the application \"{}\", which "
                                   "--applications lacks",
                                   user.name, shortened(name, 60)),
                       "users");
  return {};
}

}  // namespace

Status check(const ServerOptions& options) {
  for (const std::string& name : options.served_model_names)
    if (name.empty()) return invalid("a served model name is empty", "served_model_name");
  const TlsOptions& tls = options.tls;
  const bool asks_clients = tls.client_certificates != TlsOptions::ClientCertificates::kIgnored;
  if (!tls.on() && (asks_clients || !tls.key_file.empty() || !tls.client_ca_file.empty()))
    return invalid("--ssl-keyfile, --ssl-ca-certs and --ssl-cert-reqs need --ssl-certfile",
                   "ssl-certfile");
  if (!asks_clients && !tls.client_ca_file.empty())
    return invalid("--ssl-ca-certs needs --ssl-cert-reqs 1 or 2", "ssl-cert-reqs");
  for (const std::string& key : options.api_keys)
    if (key.empty()) return invalid("an API key is empty", "api_key");
  for (const std::string& host : options.allowed_hosts)
    if (!is_host_entry(host))
      return invalid("--allowed-hosts \"" + shortened(host, 60) +
                         "\" is not a host: give names or addresses, only IPv6 ones in brackets",
                     "allowed-hosts");
  VALORA_CHECK(check_applications_of_users(options));
  if (!options.adapter_upload_dir.empty() && !options.allow_runtime_lora_updating)
    return invalid("--adapter-upload-dir needs --allow-runtime-lora-updating",
                   "adapter-upload-dir");
  if (options.batches.in_flight < 1 || options.batches.batches < 1)
    return invalid("--batch-concurrency and --batches-per-user must be at least 1",
                   "batch-concurrency");
  if (!options.mqtt.url.empty()) {
    if (options.streams_dir.empty()) return invalid("--mqtt-url needs --streams-dir", "mqtt-url");
    VALORA_CHECK(streams::read_mqtt_settings(options.mqtt));
  }
  const std::string& root = options.root_path;
  if (!root.empty() && (!root.starts_with('/') || root.ends_with('/')))
    return invalid("the root path must begin with a slash and not end with one", "root_path");
  if (options.tls.on()) VALORA_CHECK(TlsContexts::load(options.tls));
  return {};
}

struct Server::Impl {
  explicit Impl(ServerOptions server_options)
      : options(std::move(server_options)), app(std::make_shared<StartingApp>(options)) {}

  const ServerOptions options;
  const std::shared_ptr<StartingApp> app;
  std::shared_ptr<Service> service;  // set by serve()
  std::unique_ptr<BatchStore> batch_store;
  std::unique_ptr<BatchRunner> batches;       // set by serve(); uses both
  std::unique_ptr<StreamAsker> asker;         // set by serve()
  std::unique_ptr<streams::MqttOutput> mqtt;  // set by serve(); null: no broker
  std::unique_ptr<streams::StreamSet> streams;
  // Engine callbacks may run after the server is destroyed, so they hold a weak_ptr.
  std::shared_ptr<HttpServer> http;
  std::atomic<int> signals{0};
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options) {
  VALORA_CHECK(check(options));
  if (!options.adapter_upload_dir.empty()) {
    VALORA_TRY(dir, UploadStore::prepare(options.adapter_upload_dir));
    options.adapter_upload_dir = std::move(dir);
    // Makes room for one upload in addition to everything else.
    options.limits.max_total_body_bytes += options.uploads.one;
    options.limits.max_unfinished_body_bytes =
        std::max(options.limits.max_unfinished_body_bytes, options.uploads.one);
  }
  std::unique_ptr<BatchStore> batch_store;
  if (!options.batches_dir.empty()) {
    VALORA_TRY(store, BatchStore::open(options.batches_dir, options.batches));
    batch_store = std::move(store);
    options.limits.max_total_body_bytes += options.batches.file_bytes;
    options.limits.max_unfinished_body_bytes =
        std::max(options.limits.max_unfinished_body_bytes, options.batches.file_bytes);
  }
  std::unique_ptr<streams::StreamSet> stream_set;
  if (!options.streams_dir.empty()) {
    VALORA_TRY(set, streams::StreamSet::open(options.streams_dir, options.streams));
    stream_set = std::move(set);
  }
  auto impl = std::make_unique<Impl>(std::move(options));
  impl->streams = std::move(stream_set);
  impl->batch_store = std::move(batch_store);
  VALORA_TRY(server, HttpServer::start(http_options(impl->options), impl->app));
  impl->http = std::move(server);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Status Server::serve(Engine& engine) {
  VALORA_CHECK(check_default_adapters(impl_->options.default_adapters, engine));
  impl_->service = std::make_shared<Service>(impl_->options, engine);
  engine.set_observer(&impl_->service->metrics);
  if (impl_->batch_store) {
    impl_->batches =
        std::make_unique<BatchRunner>(*impl_->batch_store, ask_through(impl_->service),
                                      [service = impl_->service.get()](const std::string& owner) {
                                        return headers_of_owner(*service, owner);
                                      });
    impl_->service->batches = impl_->batches.get();
    Metrics& metrics = impl_->service->metrics;
    metrics.add(std::make_unique<BatchCollector>(*impl_->batches, metrics.labels()));
    impl_->batches->resume();
  }
  if (impl_->streams) {
    impl_->asker = std::make_unique<StreamAsker>(impl_->service);
    streams::StreamParts parts = impl_->asker->parts(impl_->options.media);
    if (!impl_->options.mqtt.url.empty()) {
      VALORA_TRY(broker, streams::read_mqtt_settings(impl_->options.mqtt));
      impl_->mqtt = std::make_unique<streams::MqttOutput>(std::move(broker));
      parts.output = &impl_->mqtt->streams();
    }
    impl_->streams->resume(std::move(parts));
    if (impl_->mqtt) impl_->mqtt->connect();
    impl_->service->streams = impl_->streams.get();
    impl_->service->mqtt = impl_->mqtt.get();
    Metrics& metrics = impl_->service->metrics;
    metrics.add(
        std::make_unique<StreamCollector>(*impl_->streams, impl_->mqtt.get(), metrics.labels()));
  }
  impl_->app->serve(std::make_shared<App>(impl_->service));
  return {};
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Engine& engine) {
  VALORA_TRY(server, listen(std::move(options)));
  VALORA_CHECK(server->serve(engine));
  return server;
}

Server::~Server() {
  stop();
  if (impl_->service) impl_->service->engine.set_observer(nullptr);
}

uint16_t Server::port() const { return impl_->http->port(); }

std::string Server::url() const {
  const ServerOptions& options = impl_->options;
  if (!options.uds.empty()) return "unix:" + options.uds;
  const std::string& host = options.host;
  const bool ipv6 = host.find(':') != host.npos;
  return fmt::format("{}://{}{}{}:{}", options.tls.on() ? "https" : "http", ipv6 ? "[" : "", host,
                     ipv6 ? "]" : "", port());
}

void Server::drain() {
  if (impl_->service->draining.exchange(true)) return;
  impl_->http->close_after_responses();
  if (const auto limit = impl_->options.drain_timeout; limit.count() > 0)
    impl_->http->stop_after(limit);
  if (impl_->batches) impl_->batches->drain();
  if (impl_->streams) impl_->streams->stop();
  impl_->service->engine.drain([weak = std::weak_ptr(impl_->http)] {
    if (auto http = weak.lock())
      http->when_idle([weak] {
        if (auto idle = weak.lock()) idle->begin_stop();
      });
  });
}

void Server::stop() {
  impl_->http->begin_stop();
  impl_->http->wait();
  if (impl_->batches) impl_->batches->stop();
  if (impl_->streams) impl_->streams->stop();
  if (impl_->service) impl_->service->ticker->stop();  // it holds exchanges, which hold the service
}

void Server::watch_signals() {
  impl_->http->watch_signals([this] {
    if (impl_->signals++ == 0) {
      spdlog::info("draining: running requests finish first; a second signal stops at once");
      drain();
    } else {
      impl_->http->begin_stop();
    }
  });
}

void Server::run_until_stopped() { impl_->http->wait(); }

}  // namespace valora::server
