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
    // It may have been armed again after this wait had expired.
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
  pair_up();
}

void TlsRelay::pair_up() {
  using Local = asio::basic_stream_socket<asio::local::stream_protocol, Connection::Executor>;
  Local near(client_.get_executor()), far(core_->strands.take());
  ErrorCode error;
  asio::local::connect_pair(near, far, error);
  if (error) {  // most likely out of descriptors
    spdlog::debug("no place for {}: {}", peer_.with_port, error.message());
    core_->close_longest_waiting();
    return close();
  }
  server_ = std::move(near);
  shaking_hands_ = false;
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
  asio::async_write(server_, asio::buffer(up_, bytes), then(&TlsRelay::on_server_took));
}

// The client has left, or it only has nothing more to send. A client that has left rejects further
// bytes, which the server notices as on a connection without TLS.
void TlsRelay::client_finished() {
  ErrorCode ignored;
  server_.shutdown(Socket::shutdown_send, ignored);
  client_.next_layer().async_wait(Socket::wait_error, then(&TlsRelay::on_client_refused));
}

void TlsRelay::on_client_refused(ErrorCode error, size_t) {
  if (!error) close();
}

// The server may have closed its end: bytes that it wrote before are still sent.
void TlsRelay::on_server_took(ErrorCode, size_t) {
  if (!ending_) read_client();
}

void TlsRelay::read_server() {
  server_.async_read_some(asio::buffer(down_), then(&TlsRelay::on_server_bytes));
}

void TlsRelay::on_server_bytes(ErrorCode error, size_t bytes) {
  if (!error) {
    arm(write_timer_, core_->limits.write_timeout);
    return asio::async_write(client_, asio::buffer(down_, bytes), then(&TlsRelay::on_client_took));
  }
  ErrorCode ignored;
  server_.close(ignored);
  ending_ = true;
  arm(timer_, finishing_ ? kFinishTime : kLingerTime);
  client_.async_shutdown(then(&TlsRelay::on_said_goodbye));
}

void TlsRelay::on_client_took(ErrorCode error, size_t) {
  if (error) return close();
  disarm(write_timer_);
  if (finishing_) arm(timer_, kFinishTime);  // it still reads
  read_server();
}

void TlsRelay::on_said_goodbye(ErrorCode, size_t) {
  if (finishing_) return close();
  ErrorCode ignored;
  client_.next_layer().shutdown(Socket::shutdown_send, ignored);
  on_late_bytes({}, 0);
}

void TlsRelay::on_late_bytes(ErrorCode error, size_t) {
  if (error) return close();
  client_.next_layer().async_read_some(asio::buffer(down_), then(&TlsRelay::on_late_bytes));
}

void TlsRelay::finish() {
  asio::post(client_.get_executor(), [self = shared_from_this()] {
    self->guarded([&] {
      if (std::exchange(self->finishing_, true)) return;
      if (self->shaking_hands_) return self->close();
      self->arm(self->timer_, kFinishTime);
    });
  });
}

void TlsRelay::end_handshake() {
  asio::post(client_.get_executor(), [self = shared_from_this()] {
    if (self->shaking_hands_) self->close();
  });
}

void TlsRelay::close() noexcept {
  if (std::exchange(closed_, true)) return;
  shaking_hands_ = false;
  ErrorCode ignored;
  disarm(timer_);
  disarm(write_timer_);
  client_.next_layer().close(ignored);
  server_.close(ignored);
}

// Without memory, from any place: whatever operation is left ends with an error.
void TlsRelay::break_off() noexcept {
  ::shutdown(client_.next_layer().native_handle(), SHUT_RDWR);
  ::shutdown(server_.native_handle(), SHUT_RDWR);
}

}  // namespace valora::server
