// The part of Connection that reads while no request is being read: it notices the next request and
// clients that leave.
#include <boost/asio/error.hpp>

#include "server/http/connection.h"

namespace valora::server {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;

constexpr size_t kWatchBytes = size_t{4} << 10;
// How often to look whether a client has left whose pipelined bytes are not read.
constexpr std::chrono::milliseconds kDepartureCheck{1'000};

}  // namespace

void Connection::watch() {
  if (watching_ || half_closed_) return;
  if (buffer_.size() >= kMaxPipelinedBytes)
    return arm(read_timer_, kDepartureCheck, &Connection::check_departure);
  watching_ = true;
  socket_.async_read_some(buffer_.prepare(state_ == State::kLingering ? kDrainBytes : kWatchBytes),
                          [pending = pending()](error_code error, size_t bytes) mutable {
                            const auto self = pending.take();
                            self->guarded([&] { self->on_watched(error, bytes); });
                          });
}

void Connection::on_watched(ErrorCode error, size_t bytes) {
  watching_ = false;
  buffer_.commit(bytes);
  switch (state_) {
    case State::kIdle:
      if (bytes > 0 || (error == asio::error::operation_aborted && buffer_.size() > 0))
        read_header();
      else
        close();
      break;
    case State::kAnswering:
      if (error == asio::error::eof)
        peer_finished();
      else if (error)
        close();
      else
        watch();
      break;
    case State::kLingering:
      if (error)
        close();
      else
        drain_input();
      break;
    default: break;
  }
}

// The peer has closed its connection, or only its sending side: both look alike here. Half-closed
// clients get their answer.
void Connection::peer_finished() {
  if (!http11_) return close();
  half_closed_ = true;
  if (buffer_.size() == 0) keep_alive_ = false;
  probe_peer();
}

// Bytes beyond the limit of pipelined bytes stay in the kernel, and the end of the peer's bytes is
// behind them.
void Connection::check_departure() {
  if (state_ != State::kAnswering || half_closed_) return;
  if (!http11_) return close();
  probe_peer();
  arm(read_timer_, kDepartureCheck, &Connection::check_departure);
}

// A peer that has closed its connection rejects all bytes. So the server sends some without
// meaning: an interim response, or an empty comment in a stream of events.
void Connection::probe_peer() {
  if (!std::exchange(watching_errors_, true))
    socket_.async_wait(Socket::wait_error, [self = shared_from_this()](error_code error) {
      self->watching_errors_ = false;
      if (!error && self->state_ == State::kAnswering) self->close();
    });
  if (answer_complete_) return;
  pending_ += head_sent_ ? "3\r\n:\n\n\r\n" : "HTTP/1.1 100 Continue\r\n\r\n";
  flush();
}

}  // namespace valora::server
