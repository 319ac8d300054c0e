#include "server/tls/tls_relay.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

namespace valora::server {
namespace {

namespace asio = boost::asio;

// Time to discard the client's input after the server's last byte. Closing with unread input would
// send a TCP reset, which can destroy the end of the answer.
constexpr std::chrono::milliseconds kLingerTime{5'000};
constexpr std::chrono::milliseconds kFinishTime{1'000};

}  // namespace

TlsRelay::TlsRelay(Socket client, PeerName peer, std::shared_ptr<TlsContexts::Context> context,
                   std::shared_ptr<HttpCore> core, Ready ready)
    : core_(std::move(core)),
      context_(std::move(context)),
      ready_(std::move(ready)),
      peer_(std::move(peer)),
      client_(std::move(client), *context_),
      server_(client_.get_executor()),
      timer_(client_.get_executor()),
      write_timer_(client_.get_executor()) {}

TlsRelay::~TlsRelay() { core_->strands.give_back(client_.get_executor()); }

template <typename Work>
void TlsRelay::guarded(Work work) noexcept {
  try {
    if (!closed_) work();
  } catch (const std::exception& e) {
    spdlog::error("a TLS connection failed: {}", e.what());
    close();
  }
}

auto TlsRelay::then(Step step) {
  return [turn = Turn(shared_from_this()), step](ErrorCode error, size_t bytes = 0) mutable {
    const auto self = turn.take();
    self->guarded([&] { (self.get()->*step)(error, bytes); });
  };
}

void TlsRelay::start() {
  asio::dispatch(client_.get_executor(), [self = shared_from_this()] {
    self->guarded([&] {
      self->arm(self->timer_, self->core_->limits.header_timeout);
      self->client_.async_handshake(asio::ssl::stream_base::server,
                                    self->then(&TlsRelay::on_handshake));
    });
  });
}

void TlsRelay::arm(Timer& timer, std::chrono::milliseconds delay) {
  timer.expires_after(delay);
  timer.async_wait([turn = Turn(shared_from_this()), &timer](ErrorCode error) mutable {
    const auto self = turn.take();
    // The timer may have been re-armed after this wait expired: ignore the old expiry.
    if (!error && timer.expiry() <= std::chrono::steady_clock::now()) self->close();
  });
}

void TlsRelay::disarm(Timer& timer) {
  timer.expires_at(std::chrono::steady_clock::time_point::max());
}

void TlsRelay::on_handshake(ErrorCode error, size_t) {
  if (error) {
    spdlog::debug("no TLS with {}: {}", peer_.with_port, error.message());
    return close();
  }
  disarm(timer_);
  connect_socket_pair();
}

void TlsRelay::connect_socket_pair() {
  using Local = asio::basic_stream_socket<asio::local::stream_protocol, Connection::Executor>;
  Local near(client_.get_executor()), far(core_->strands.take());
  ErrorCode error;
  asio::local::connect_pair(near, far, error);
  if (error) {  // most likely out of descriptors
    spdlog::debug("no place for {}: {}", peer_.with_port, error.message());
    core_->close_longest_idle();
    return close();
  }
  server_ = std::move(near);
  handshaking_ = false;
  std::exchange(ready_, nullptr)(Socket(std::move(far)), peer_);
  read_client();
  read_server();
}

void TlsRelay::read_client() {
  client_.async_read_some(asio::buffer(up_), then(&TlsRelay::on_client_bytes));
}

void TlsRelay::on_client_bytes(ErrorCode error, size_t bytes) {
  if (ending_) return;
  if (error == asio::error::eof) return client_finished();
  if (error) return close();
  asio::async_write(server_, asio::buffer(up_, bytes), then(&TlsRelay::on_server_written));
}

// The client has disconnected, or only has nothing more to send. A disconnected client rejects
// further bytes, which the server notices as on a connection without TLS.
void TlsRelay::client_finished() {
  ErrorCode ignored;
  server_.shutdown(Socket::shutdown_send, ignored);
  client_.next_layer().async_wait(Socket::wait_error, then(&TlsRelay::on_client_refused));
}

void TlsRelay::on_client_refused(ErrorCode error, size_t) {
  if (!error) close();
}

// Even if the server has closed its end, the bytes it wrote before are still sent.
void TlsRelay::on_server_written(ErrorCode, size_t) {
  if (!ending_) read_client();
}

void TlsRelay::read_server() {
  server_.async_read_some(asio::buffer(down_), then(&TlsRelay::on_server_bytes));
}

void TlsRelay::on_server_bytes(ErrorCode error, size_t bytes) {
  if (!error) {
    arm(write_timer_, core_->limits.write_timeout);
    return asio::async_write(client_, asio::buffer(down_, bytes),
                             then(&TlsRelay::on_client_written));
  }
  ErrorCode ignored;
  server_.close(ignored);
  ending_ = true;
  arm(timer_, finishing_ ? kFinishTime : kLingerTime);
  client_.async_shutdown(then(&TlsRelay::on_shutdown_sent));
}

void TlsRelay::on_client_written(ErrorCode error, size_t) {
  if (error) return close();
  disarm(write_timer_);
  if (finishing_) arm(timer_, kFinishTime);  // the client is still reading
  read_server();
}

void TlsRelay::on_shutdown_sent(ErrorCode, size_t) {
  if (finishing_) return close();
  ErrorCode ignored;
  client_.next_layer().shutdown(Socket::shutdown_send, ignored);
  on_bytes_after_close({}, 0);
}

void TlsRelay::on_bytes_after_close(ErrorCode error, size_t) {
  if (error) return close();
  client_.next_layer().async_read_some(asio::buffer(down_), then(&TlsRelay::on_bytes_after_close));
}

void TlsRelay::finish() {
  asio::post(client_.get_executor(), [self = shared_from_this()] {
    self->guarded([&] {
      if (std::exchange(self->finishing_, true)) return;
      if (self->handshaking_) return self->close();
      self->arm(self->timer_, kFinishTime);
    });
  });
}

void TlsRelay::end_handshake() {
  asio::post(client_.get_executor(), [self = shared_from_this()] {
    if (self->handshaking_) self->close();
  });
}

void TlsRelay::close() noexcept {
  if (std::exchange(closed_, true)) return;
  handshaking_ = false;
  ErrorCode ignored;
  disarm(timer_);
  disarm(write_timer_);
  client_.next_layer().close(ignored);
  server_.close(ignored);
}

// Called from anywhere when memory runs out: makes all pending operations fail.
void TlsRelay::shut_down_sockets() noexcept {
  ::shutdown(client_.next_layer().native_handle(), SHUT_RDWR);
  ::shutdown(server_.native_handle(), SHUT_RDWR);
}

}  // namespace valora::server
