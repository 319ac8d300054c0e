#include "server/http/http_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/http/connection.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptRetry{50};

// Every connection takes a file descriptor, and the usual soft limit is 1024.
void raise_descriptor_limit(size_t connections) {
  constexpr size_t kOtherFiles = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, connections + kOtherFiles);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    spdlog::warn("could not raise the limit of open files to {}", wanted);
}

// Does not block: bytes that do not fit into the socket's buffer are dropped.
void turn_away(Connection::Socket socket) {
  const std::string body = error_json(503, "the server has too many connections; try again later");
  const std::string response = fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      body.size(), body);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(response), ignored);
  socket.shutdown(Connection::Socket::shutdown_send, ignored);
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

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  Impl(const HttpServerOptions& options, std::shared_ptr<HttpHandler> handler)
      : core(std::make_shared<HttpCore>(options.limits, std::move(handler), options.io_threads,
                                        options.handler_threads)),
        work(core->io.get_executor()),
        accept_strand(asio::make_strand(core->io)),
        acceptor(accept_strand),
        retry_timer(accept_strand),
        stop_timer(accept_strand),
        signals(accept_strand) {}

  Status bind(const std::string& host, uint16_t port);
  void accept();
  void on_accept(error_code error, Connection::Socket socket);
  void wait_signal();
  void begin_stop();
  void join();

  std::shared_ptr<HttpCore> core;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  asio::strand<asio::io_context::executor_type> accept_strand;
  tcp::acceptor acceptor;
  asio::steady_timer retry_timer;
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

Status HttpServer::Impl::bind(const std::string& host, uint16_t wanted_port) {
  error_code error;
  tcp::resolver resolver(core->io);
  const auto endpoints =
      resolver.resolve(host, std::to_string(wanted_port), tcp::resolver::passive, error);
  if (error)
    return invalid(fmt::format("the host \"{}\" can't be resolved: {}", host, error.message()),
                   "host");
  for (const auto& entry : endpoints) {
    error_code ignored;
    acceptor.close(ignored);
    if (acceptor.open(entry.endpoint().protocol(), error)) continue;
    acceptor.set_option(tcp::acceptor::reuse_address(true), ignored);
    if (acceptor.bind(entry.endpoint(), error)) continue;
    if (acceptor.listen(asio::socket_base::max_listen_connections, error)) continue;
    port = acceptor.local_endpoint(ignored).port();
    return {};
  }
  return Error{ErrorCode::kUnavailable,
               fmt::format("can't listen on {}:{}: {}", host, wanted_port, error.message()),
               "port"};
}

void HttpServer::Impl::accept() {
  acceptor.async_accept(asio::make_strand(core->io),
                        [self = shared_from_this()](error_code error, Connection::Socket socket) {
                          self->on_accept(error, std::move(socket));
                        });
}

void HttpServer::Impl::on_accept(error_code error, Connection::Socket socket) {
  if (!acceptor.is_open()) return;
  if (error) {
    // Most likely out of descriptors. Open connections continue, and new clients wait in the
    // backlog.
    spdlog::warn("accept: {}", error.message());
    retry_timer.expires_after(kAcceptRetry);
    retry_timer.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->accept();
    });
    return;
  }
  const size_t count = core->connection_count();
  if (count >= core->limits.max_connections + core->limits.status_connections) {
    turn_away(std::move(socket));
  } else {
    const bool status_only = count >= core->limits.max_connections;
    auto connection = std::make_shared<Connection>(std::move(socket), core, status_only);
    core->add(connection);
    connection->start();
  }
  accept();
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
  core->handlers.join();
  for (const auto& connection : core->connections()) connection->close_now();
  work.reset();
  for (std::thread& thread : threads) thread.join();
  core->stopped = true;
  core->io.restart();
  core->io.poll();
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      std::shared_ptr<HttpHandler> handler) {
  if (options.io_threads < 1 || options.handler_threads < 1)
    return invalid("the server needs at least one thread");
  raise_descriptor_limit(options.limits.max_connections + options.limits.status_connections);
  auto impl = std::make_shared<Impl>(options, std::move(handler));
  VALORA_CHECK(impl->bind(options.host, options.port));
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
    impl->retry_timer.cancel();
    impl->stop_timer.cancel();
    impl->signals.cancel(ignored);
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
