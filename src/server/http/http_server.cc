#include "server/http/http_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>

#include "server/http/connection.h"
#include "server/http/listener.h"
#include "server/openai/errors.h"
#include "server/server.h"
#include "server/tls/tls_acceptor.h"

namespace valora::server {
namespace {

// Raises the limit on open files to fit as many connections as `limits` allows, plus other files.
// Returns how many connections fit, at most limits.max_connections, and logs if that is fewer.
// clients: sockets of clients without a connection.
//
// Each connection takes a file descriptor, and the usual soft limit is 1024. Some are reserved for
// files and for media downloads; connections that do not fit are not accepted.
size_t connections_within_descriptors(const HttpLimits& limits, size_t clients) {
  constexpr size_t kOtherFiles = 256;
  const size_t others = limits.status_connections + kOtherFiles + clients;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return limits.max_connections;
  const rlim_t wanted = limits.max_connections + others;
  if (files.rlim_cur < wanted) {
    const rlim_t before = std::exchange(files.rlim_cur, std::min<rlim_t>(files.rlim_max, wanted));
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
  }
  if (files.rlim_cur >= wanted) return limits.max_connections;
  const size_t left = files.rlim_cur > 2 * others ? files.rlim_cur - others : files.rlim_cur / 2;
  const size_t most = std::max<size_t>(1, left);
  spdlog::warn("only {} files may be open (ulimit -n), so there are at most {} connections",
               files.rlim_cur, most);
  return most;
}

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptRetry{50};
// Faults in quicker succession are logged as one.
constexpr std::chrono::seconds kFaultPause{10};

std::string rejection() {
  const std::string body = error_json(503, "the server has too many connections; try again later");
  return fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      body.size(), body);
}

// Does not block: bytes that do not fit into the socket's buffer are dropped.
void reject(ClientStream::Socket socket) {
  const std::string response = rejection();
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(response), ignored);
  socket.shutdown(ClientStream::Socket::shutdown_send, ignored);
}

PeerName prepare(ClientStream::Socket& socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  return name_of_peer(socket.remote_endpoint(ignored));
}

// A handler that throws (most likely out of memory) must not end the server.
void run_io(HttpCore& core) {
  for (;;) {
    try {
      core.io.run();
      return;
    } catch (const std::exception& e) {
      spdlog::error("exception in an HTTP connection: {}", e.what());
    }
  }
}

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl>, Rescuable {
  Impl(const HttpServerOptions& options, std::shared_ptr<HttpHandler> handler)
      : core(std::make_shared<HttpCore>(options.limits, std::move(handler), options.io_threads,
                                        options.handler_threads,
                                        options.tls.on() ? TlsAcceptor::kMaxHandshakes : 0)),
        work(core->io.get_executor()),
        accept_strand(asio::make_strand(core->io)),
        acceptor(accept_strand),
        retry_timer(accept_strand),
        stop_timer(accept_strand),
        signals(accept_strand) {
    core->rescue.reserve_slot();
  }

  // Accepts again: an accept lost to an exception in asio would otherwise be the last.
  void rescue() override {
    asio::post(accept_strand, [self = shared_from_this()] {
      if (self->acceptor.is_open()) self->accept();
    });
  }
  class Turn;

  Status bind(const HttpServerOptions& options);
  void accept();
  void on_accept(error_code error, ClientStream::Socket socket);
  void admit(ClientStream stream, const PeerName& peer);
  void wait_signal();
  void begin_stop();
  void join();

  std::shared_ptr<HttpCore> core;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  asio::strand<asio::io_context::executor_type> accept_strand;
  Acceptor acceptor;
  std::optional<SocketFile> socket_file;  // for a Unix domain socket
  std::optional<TlsAcceptor> tls;
  asio::steady_timer retry_timer;
  std::chrono::steady_clock::time_point last_fault = std::chrono::steady_clock::now() - kFaultPause;
  asio::steady_timer stop_timer;
  asio::signal_set signals;
  std::function<void()> on_signal;
  std::vector<std::thread> threads;
  uint16_t port = 0;

  std::mutex mutex;
  std::condition_variable stop_asked;
  bool stopping = false;
  std::once_flag joined;
};

Status HttpServer::Impl::bind(const HttpServerOptions& options) {
  if (options.uds.empty()) {
    VALORA_TRY(bound, listen_on_port(acceptor, options.host, options.port));
    port = bound;
  } else {
    VALORA_TRY(bound, SocketFile::listen(acceptor, options.uds, options.uds_mode));
    socket_file.emplace(std::move(bound));
  }
  if (!options.tls.on()) return {};
  VALORA_TRY(contexts, TlsContexts::load(options.tls));
  tls.emplace(std::move(contexts), core,
              [weak = weak_from_this()](ClientStream stream, const PeerName& peer) {
                if (const auto self = weak.lock())
                  asio::post(self->accept_strand,
                             [self, stream = std::move(stream), peer]() mutable {
                               if (self->acceptor.is_open()) self->admit(std::move(stream), peer);
                             });
              });
  return {};
}

// The pending accept. If an exception loses it, the server accepts again.
class HttpServer::Impl::Turn {
 public:
  explicit Turn(std::shared_ptr<Impl> server) : server_(std::move(server)) {}
  Turn(Turn&&) = default;
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (server_) server_->core->rescue.add(server_);
  }
  std::shared_ptr<Impl> take() { return std::exchange(server_, nullptr); }

 private:
  std::shared_ptr<Impl> server_;
};

void HttpServer::Impl::accept() {
  Turn turn(shared_from_this());
  acceptor.async_accept(
      core->strands.take(),
      [turn = std::move(turn)](error_code error, ClientStream::Socket socket) mutable {
        turn.take()->on_accept(error, std::move(socket));
      });
}

void HttpServer::Impl::on_accept(error_code error, ClientStream::Socket socket) {
  if (!acceptor.is_open()) return;
  if (error) core->strands.give_back(socket.get_executor());
  if (error) {
    // Most likely out of descriptors. Open connections continue; new clients wait in the backlog
    // until a connection that is waiting for a request has made room.
    Turn turn(shared_from_this());
    const auto now = std::chrono::steady_clock::now();
    if (now - std::exchange(last_fault, now) > kFaultPause)
      spdlog::warn("accept: {}; connections without a request are closed", error.message());
    core->close_longest_idle();
    retry_timer.expires_after(kAcceptRetry);
    retry_timer.async_wait([turn = std::move(turn)](error_code cancelled) mutable {
      const auto self = turn.take();
      if (!cancelled) self->accept();
    });
    return;
  }
  try {
    const PeerName peer = prepare(socket);
    if (tls)
      tls->take(std::move(socket), peer);
    else
      admit(ClientStream(std::move(socket)), peer);
  } catch (const std::exception& e) {
    spdlog::error("a connection was refused: {}", e.what());
  }
  accept();
}

void HttpServer::Impl::admit(ClientStream stream, const PeerName& peer) {
  const size_t count = core->connection_count();
  const bool full = count >= core->limits.max_connections && !core->close_longest_idle();
  if (full && count >= core->limits.max_connections + core->limits.status_connections) {
    if (tls) return tls->refuse(std::move(stream), peer, rejection());
    core->strands.give_back(stream.get_executor());
    reject(std::move(stream.socket()));
  } else {
    auto connection = std::make_shared<Connection>(std::move(stream), peer, core, full);
    core->add(connection);
    connection->start();
  }
}

void HttpServer::Impl::wait_signal() {
  signals.async_wait([self = shared_from_this()](error_code error, int) {
    if (error) return;
    self->wait_signal();
    self->on_signal();
  });
}

void HttpServer::Impl::join() {
  // Handlers first: their last answers need the io threads.
  core->handlers.finish();
  for (const auto& connection : core->connections()) connection->close_now();
  if (tls) tls->finish();
  work.reset();
  for (std::thread& thread : threads) thread.join();
  core->rescue.stop();  // its thread must not destroy the core that it belongs to
  core->stopped = true;
  core->io.restart();
  core->io.poll();
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      std::shared_ptr<HttpHandler> handler) {
  if (options.io_threads < 1 || options.handler_threads < 1)
    return invalid("the server needs at least one thread");
  HttpServerOptions fitting = options;
  fitting.limits.max_connections = connections_within_descriptors(
      options.limits, options.tls.on() ? TlsAcceptor::kMaxHandshakes : 0);
  auto impl = std::make_shared<Impl>(fitting, std::move(handler));
  VALORA_CHECK(impl->bind(fitting));
  impl->accept();
  for (int i = 0; i < options.io_threads; ++i)
    impl->threads.emplace_back([core = impl->core] { run_io(*core); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  begin_stop();
  wait();
}

uint16_t HttpServer::port() const { return impl_->port; }

void HttpServer::close_after_responses() {
  impl_->core->close_after_responses = true;
  for (const auto& connection : impl_->core->connections()) connection->stop_reading();
}

size_t HttpServer::active_exchanges() const { return impl_->core->active_exchanges(); }

void HttpServer::when_idle(std::function<void()> idle) { impl_->core->when_idle(std::move(idle)); }

void HttpServer::begin_stop() { impl_->begin_stop(); }

void HttpServer::stop_after(std::chrono::milliseconds delay) {
  asio::post(impl_->accept_strand, [impl = impl_, delay] {
    impl->stop_timer.expires_after(delay);
    impl->stop_timer.async_wait([impl](error_code cancelled) {
      if (cancelled) return;
      spdlog::warn("the drain took too long: {} requests are cancelled",
                   impl->core->active_exchanges());
      impl->begin_stop();
    });
  });
}

void HttpServer::Impl::begin_stop() {
  {
    std::lock_guard lock(mutex);
    if (stopping) return;
    stopping = true;
  }
  asio::post(accept_strand, [impl = shared_from_this()] {
    error_code ignored;
    impl->acceptor.close(ignored);
    impl->socket_file.reset();
    impl->retry_timer.cancel();
    impl->stop_timer.cancel();
    impl->signals.cancel(ignored);
    if (impl->tls) impl->tls->finish();
    for (const auto& connection : impl->core->connections()) connection->close_now();
  });
  stop_asked.notify_all();
}

void HttpServer::wait() {
  {
    std::unique_lock lock(impl_->mutex);
    impl_->stop_asked.wait(lock, [&] { return impl_->stopping; });
  }
  std::call_once(impl_->joined, [&] { impl_->join(); });
}

void HttpServer::watch_signals(std::function<void()> on_signal) {
  // Closing a terminal or rotating logs must not cut streams.
  for (const int ignored : {SIGHUP, SIGUSR1, SIGUSR2}) std::signal(ignored, SIG_IGN);
  error_code error;
  impl_->signals.add(SIGTERM, error);
  if (!error) impl_->signals.add(SIGINT, error);
  if (error) spdlog::warn("signals are not watched: {}", error.message());
  asio::post(impl_->accept_strand, [impl = impl_, on_signal = std::move(on_signal)] {
    impl->on_signal = on_signal;
    impl->wait_signal();
  });
}

}  // namespace valora::server
