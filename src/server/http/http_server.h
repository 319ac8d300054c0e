// An HTTP/1.1 server over TCP or a Unix domain socket. Reads requests under limits and passes them
// to an HttpHandler. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http/http.h"
#include "server/server.h"

namespace valora::server {

struct HttpServerOptions {
  std::string host;
  uint16_t port = 0;
  int io_threads = 1;
  int handler_threads = 1;
  HttpLimits limits;
  std::string uds;  // path of a Unix domain socket, instead of host and port; empty: none
  unsigned uds_mode = 0660;
  TlsOptions tls;
};

class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   std::shared_ptr<HttpHandler> handler);
  ~HttpServer();  // stops

  uint16_t port() const;  // 0 for a Unix domain socket

  // Makes every later response close its connection, and reads no further requests.
  void close_after_responses();
  // Exchanges whose answer is not fully sent yet.
  size_t active_exchanges() const;
  // Calls `idle` once, on a server thread, as soon as there are no active exchanges.
  void when_idle(std::function<void()> idle);

  // Closes all connections. Returns at once; may be called on a server thread.
  void begin_stop();
  // Calls begin_stop() after this time, on a server thread.
  void stop_after(std::chrono::milliseconds delay);
  // Waits for begin_stop() and for the threads to end. Must not be called on a server thread.
  void wait();

  // Calls `on_signal` on a server thread for each SIGTERM and SIGINT from now on, and ignores
  // SIGHUP, SIGUSR1 and SIGUSR2. Called at most once.
  void watch_signals(std::function<void()> on_signal);

 private:
  struct Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace valora::server
