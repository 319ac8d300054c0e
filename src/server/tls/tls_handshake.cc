#include "server/tls/tls_handshake.h"

#include <spdlog/spdlog.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace valora::server {
namespace {

// For a refused client to read its answer and leave. Closing with unread input would send a TCP
// reset, which can destroy the answer.
constexpr std::chrono::milliseconds kRefusalTime{5'000};

}  // namespace

TlsHandshake::TlsHandshake(ClientStream stream, PeerName peer, std::shared_ptr<HttpCore> core)
    : core_(std::move(core)),
      peer_(std::move(peer)),
      stream_(std::move(stream)),
      timer_(stream_->get_executor()) {
  core_->rescue.reserve_slot();
}

TlsHandshake::~TlsHandshake() {
  core_->rescue.release_slot();
  if (stream_) core_->strands.give_back(stream_->get_executor());
}

template <typename Work>
void TlsHandshake::guarded(Work work) noexcept {
  try {
    if (open_) work();
  } catch (const std::exception& e) {
    spdlog::error("a TLS connection failed: {}", e.what());
    close();
  }
}

template <typename Work>
void TlsHandshake::on_strand(Work work) {
  boost::asio::dispatch(timer_.get_executor(),
                        [turn = Turn(shared_from_this()), work = std::move(work)]() mutable {
                          const auto self = turn.take();
                          self->guarded([&] { work(*self); });
                        });
}

auto TlsHandshake::then(Step step) {
  return [turn = Turn(shared_from_this()), step](ErrorCode error, size_t = 0) mutable {
    const auto self = turn.take();
    self->guarded([&] { (self.get()->*step)(error); });
  };
}

void TlsHandshake::arm(std::chrono::milliseconds delay) {
  timer_.expires_after(delay);
  timer_.async_wait(then(&TlsHandshake::on_timer));
}

void TlsHandshake::on_timer(ErrorCode error) {
  if (!error) close();
}

void TlsHandshake::start(Ready ready) {
  ready_ = std::move(ready);
  on_strand([](TlsHandshake& self) {
    self.arm(self.core_->limits.header_timeout);
    self.stream_->async_handshake(self.then(&TlsHandshake::on_handshake));
  });
}

void TlsHandshake::on_handshake(ErrorCode error) {
  if (error) {
    spdlog::debug("no TLS with {}: {}", peer_.with_port, error.message());
    return close();
  }
  open_ = false;
  timer_.cancel();
  ClientStream stream = std::move(*stream_);
  stream_.reset();
  std::exchange(ready_, nullptr)(std::move(stream), peer_);
}

void TlsHandshake::refuse(std::string answer) {
  answer_ = std::move(answer);
  on_strand([](TlsHandshake& self) {
    self.arm(kRefusalTime);
    boost::asio::async_write(*self.stream_, boost::asio::buffer(self.answer_),
                             self.then(&TlsHandshake::on_answered));
  });
}

void TlsHandshake::on_answered(ErrorCode error) {
  if (error) return close();
  stream_->async_finish([next = then(&TlsHandshake::on_discarded)]() mutable { next({}); });
}

void TlsHandshake::on_discarded(ErrorCode error) {
  if (error) return close();
  stream_->async_read_some(boost::asio::buffer(discarded_), then(&TlsHandshake::on_discarded));
}

void TlsHandshake::end() {
  boost::asio::post(timer_.get_executor(), [self = shared_from_this()] {
    if (self->open_) self->close();
  });
}

// Called from anywhere when memory runs out.
void TlsHandshake::give_up() noexcept {
  if (!given_up_.exchange(true)) core_->rescue.add(shared_from_this());
}

void TlsHandshake::close() noexcept {
  open_ = false;
  ErrorCode ignored;
  timer_.cancel();
  if (stream_) stream_->socket().close(ignored);
}

}  // namespace valora::server
