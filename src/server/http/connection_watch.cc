// The part of Connection that reads while idle or answering: it detects the next request and
// clients that disconnect.
#include <boost/asio/error.hpp>

#include "server/http/connection.h"

namespace valora::server {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;

constexpr size_t kWatchBytes = size_t{4} << 10;
// How often to check whether a client with unread pipelined bytes has disconnected.
constexpr std::chrono::milliseconds kDepartureCheck{1'000};

}  // namespace

void Connection::watch() {
  if (read_pending_ || half_closed_) return;
  if (buffer_.size() >= kMaxPipelinedBytes)
    return arm(read_timer_, kDepartureCheck, &Connection::check_for_disconnect);
  read_pending_ = true;
  stream_.async_read_some(
      buffer_.prepare(state_ == State::kLingering ? kDrainBytes : kWatchBytes),
      cancellable([pending = pending()](error_code error, size_t bytes) mutable {
        const auto self = pending.take();
        self->guarded([&] { self->on_watch_read(error, bytes); });
      }));
}

void Connection::on_watch_read(ErrorCode error, size_t bytes) {
  read_pending_ = false;
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
        on_peer_eof();
      else if (error)
        close();
      else
        watch();
      break;
    case State::kLingering:
      if (!stream_.has_finished()) break;  // on_finished() goes on
      if (error)
        close();
      else
        drain_input();
      break;
    default: break;
  }
}

// The peer has closed its connection, or only its sending side: the two look alike here.
// Half-closed clients still get their answer.
void Connection::on_peer_eof() {
  if (!http11_) return close();
  half_closed_ = true;
  if (buffer_.size() == 0) keep_alive_ = false;
  probe_peer();
}

// Bytes beyond the pipelining limit stay in the kernel, so the end of the stream behind them cannot
// be seen by reading.
void Connection::check_for_disconnect() {
  if (state_ != State::kAnswering || half_closed_) return;
  if (!http11_) return close();
  probe_peer();
  arm(read_timer_, kDepartureCheck, &Connection::check_for_disconnect);
}

// A peer that has closed its connection rejects any bytes. So the server sends harmless ones: an
// interim response, or an empty comment in an event stream.
void Connection::probe_peer() {
  if (!std::exchange(error_wait_pending_, true))
    stream_.socket().async_wait(ClientStream::Socket::wait_error,
                                [self = shared_from_this()](error_code error) {
                                  self->error_wait_pending_ = false;
                                  if (!error && self->state_ == State::kAnswering) self->close();
                                });
  if (answer_complete_) return;
  pending_ += head_sent_ ? "3\r\n:\n\n\r\n" : "HTTP/1.1 100 Continue\r\n\r\n";
  flush();
}

}  // namespace valora::server
