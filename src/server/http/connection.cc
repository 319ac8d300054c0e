#include "server/http/connection.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "server/http/connection_messages.h"
#include "server/http/framing.h"

namespace valora::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Time to read the header of a status request on a connection beyond the limit.
constexpr std::chrono::milliseconds kStatusTime{1'000};
// How long to read and discard input after an early answer. Closing with unread input would send a
// TCP reset, which can destroy the answer.
constexpr std::chrono::milliseconds kLingerTime{5'000};
// The part of it that a server which stops leaves for telling a client that its answer has ended.
constexpr std::chrono::milliseconds kFinishTime{1'000};

std::string_view as_view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// The host in an absolute target ("GET http://host/path") overrides the Host header.
void set_host_of(std::string_view target, Headers& headers) {
  const size_t scheme = target.find("://");
  if (scheme == target.npos || target[0] == '/') return;
  const std::string_view host = target.substr(scheme + 3);
  for (auto& [name, value] : headers)
    if (same_header_name(name, "host")) value = host.substr(0, host.find_first_of("/?#"));
}

std::optional<std::string> path_of(std::string_view target) {
  if (const size_t scheme = target.find("://"); scheme != target.npos && target[0] != '/') {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == target.npos ? "/" : target.substr(slash);
  }
  return percent_decode(target.substr(0, target.find('?')));
}

}  // namespace

bool Connection::is_disconnect(ErrorCode error) {
  return error == http::error::end_of_stream || error == http::error::partial_message ||
         error.category() != make_error_code(http::error::end_of_stream).category();
}

Connection::Connection(ClientStream stream, const PeerName& peer, std::shared_ptr<HttpCore> core,
                       bool status_only)
    : core_(std::move(core)),
      stream_(std::move(stream)),
      read_timer_(stream_.get_executor()),
      write_timer_(stream_.get_executor()),
      buffer_(core_->limits.max_header_bytes + kMaxPipelinedBytes + kDrainBytes),
      count_extensions_([this](uint64_t, boost::beast::string_view text, ErrorCode& error) {
        if ((chunk_extension_bytes_ += text.size()) > core_->limits.max_header_bytes)
          error = http::error::header_limit;
      }),
      status_only_(status_only) {
  client_ = peer.address;
  request_.peer = peer.with_port;
  core_->rescue.reserve_slot();
}

Connection::~Connection() {
  core_->end_waiting(place_, element_);
  core_->remove(this);
  release_budgets();
  core_->rescue.release_slot();
  core_->strands.give_back(stream_.get_executor());
}

void Connection::give_up() noexcept {
  if (!given_up_.exchange(true)) core_->rescue.add(shared_from_this());
}

// Returns the connection's shares of the server's budgets and counters. Otherwise a drain would
// wait forever for an exchange lost to an exception.
void Connection::release_budgets() noexcept {
  release_outbound(0);
  release_body(serial_);
  if (!std::exchange(in_exchange_, false)) return;
  try {
    core_->exchange_ended();
  } catch (const std::exception& e) {
    spdlog::error("the end of a drain failed: {}", e.what());
  }
}

void Connection::start() {
  asio::dispatch(stream_.get_executor(), [pending = pending()]() mutable {
    const auto self = pending.take();
    self->guarded([&] { self->next_request(); });
  });
}

void Connection::stop_reading() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle || self->state_ == State::kHeader)
      self->close();
    else if (self->state_ == State::kBody)
      self->cancel_read();
    else if (self->state_ == State::kMessages && self->messages_->reading)
      self->guarded([&] { self->end_messages(kGoingAway, "the server stops"); });
  });
}

void Connection::close_now() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kLingering && !self->stream_.has_finished())
      self->guarded(
          [&] { self->arm(self->read_timer_, kFinishTime, &Connection::read_timed_out); });
    else
      self->close();
  });
}

void Connection::close_if_idle() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle || self->state_ == State::kHeader)
      self->close();
    else if (self->state_ == State::kMessages && self->messages_->awaited())
      self->guarded([&] { self->end_messages(kTryAgainLater, "the server is full"); });
  });
}

// ---- reading ----

void Connection::next_request() {
  state_ = State::kIdle;
  header_began_ = false;
  if (!status_only_) core_->mark_idle(place_);
  arm(read_timer_, status_only_ ? kStatusTime : core_->limits.keep_alive_timeout,
      &Connection::read_timed_out);
  if (read_pending_) {
    // Pipelined bytes are already buffered. Cancel the pending read; on_watch_read() continues with
    // them.
    if (buffer_.size() > 0) cancel_read();
    return;
  }
  if (buffer_.size() > 0)
    read_header();
  else if (half_closed_)
    close();
  else
    watch();
}

void Connection::read_header() {
  if (!std::exchange(header_began_, true))
    arm(read_timer_, status_only_ ? kStatusTime : core_->limits.header_timeout,
        &Connection::read_timed_out);
  // Skip empty lines before a request.
  while (buffer_.size() > 0 && (*static_cast<const char*>(buffer_.cdata().data()) == '\r' ||
                                *static_cast<const char*>(buffer_.cdata().data()) == '\n'))
    buffer_.consume(1);
  if (buffer_.size() == 0) return half_closed_ ? close() : watch();
  state_ = State::kHeader;
  timed_out_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(core_->limits.max_header_bytes));
  parser_->body_limit(boost::none);  // on_header() checks the limit, so that it can report it
  parser_->on_chunk_header(count_extensions_);
  chunk_extension_bytes_ = 0;
  http::async_read_header(stream_, buffer_, *parser_,
                          cancellable([pending = pending()](error_code error, size_t) mutable {
                            const auto self = pending.take();
                            self->guarded([&] { self->on_header(error); });
                          }));
}

void Connection::on_header(ErrorCode error) {
  if (state_ != State::kHeader) return;
  if (error) {
    if (timed_out_) return refuse(408, "timed out reading the request header");
    if (is_disconnect(error)) return close();
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refuse(431, fmt::format("the request header is larger than {} bytes",
                                     core_->limits.max_header_bytes));
    return refuse(400, "malformed HTTP request: " + error.message());
  }
  core_->end_waiting(place_, element_);
  const auto& message = parser_->get();
  request_.method = as_view(message.method_string());
  request_.headers.clear();
  for (const auto& field : message)
    request_.headers.emplace_back(as_view(field.name_string()), as_view(field.value()));
  header_field_bytes_ = field_bytes();
  request_.id = request_id_from(request_.header("x-request-id"));
  const std::string_view target = as_view(message.target());
  set_host_of(target, request_.headers);
  log_line_ = fmt::format("{} {}", request_.method,
                          target.substr(0, std::min<size_t>(target.find('?'), 200)));
  http11_ = message.version() >= 11;
  keep_alive_ = parser_->keep_alive();
  head_only_ = request_.method == "HEAD";
  begin_exchange();

  if (const auto fault = framing_fault(request_.headers, http11_))
    return refuse(fault->status, fault->message);
  if (target.size() > core_->limits.max_target_bytes)
    return refuse(414, "the request target is too long");
  auto path = path_of(target);
  if (!path) return refuse(400, "the request target has a malformed percent escape");
  path_ = *path;
  request_.path = std::move(*path);
  const size_t query = target.find('?');
  request_.query = query == target.npos ? "" : std::string(target.substr(query + 1));
  const bool messages = becomes_messages();
  if (status_only_) {
    keep_alive_ = false;
    if (!core_->handler->is_status(request_))
      return refuse(503, "the server has too many connections; try again later");
  }
  if (auto answer = core_->handler->screen(request_, common_headers_))
    return respond_without_handler(*answer);
  if (messages) return accept_messages();
  body_limit_ = core_->handler->max_body_bytes(request_).value_or(core_->limits.max_body_bytes);
  if (const uint64_t declared = parser_->content_length().value_or(0); declared > body_limit_)
    return refuse(413, fmt::format("the request body of {} bytes is larger than the allowed {}",
                                   declared, body_limit_));
  parser_->body_limit(body_limit_);
  // HTTP/1.0 has no interim answers.
  if (http11_ && !parser_->is_done() && !request_.header("expect").empty()) {
    pending_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
  body_began_ = std::chrono::steady_clock::now();
  read_body();
}

// ---- ending ----

// After the close frames: a reset would destroy the one that was sent.
void Connection::messages_ended() {
  if (state_ != State::kMessages) return;
  if (!stream_.has_finished()) return close();
  state_ = State::kLingering;
  arm(read_timer_, kLingerTime, &Connection::read_timed_out);
  drain_input();
}

void Connection::linger() {
  state_ = State::kLingering;
  arm(read_timer_, kLingerTime, &Connection::read_timed_out);
  stream_.async_finish([pending = pending()]() mutable {
    const auto self = pending.take();
    self->guarded([&] { self->on_finished(); });
  });
}

void Connection::on_finished() {
  if (state_ != State::kLingering) return;
  if (half_closed_) return close();
  if (!read_pending_) drain_input();
}

void Connection::drain_input() {
  buffer_.clear();
  watch();
}

void Connection::close() noexcept {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  core_->end_waiting(place_, element_);
  disarm(read_timer_);
  disarm(write_timer_);
  stream_.close(writing_ || messages_);
  core_->remove(this);
  const bool was_in_exchange = in_exchange_;
  const auto left = std::exchange(left_, nullptr);
  try {
    if (messages_) {  // operations that wait for each other, not for the socket
      cancel_read();
      messages_->closing.emit(asio::cancellation_type::terminal);
    }
    if (was_in_exchange && !common_headers_.empty()) log_exchange();
    if (left) left();
  } catch (const std::exception& e) {
    spdlog::error("closing an HTTP connection failed: {}", e.what());
  }
  release_budgets();
}

void Connection::release_body(uint64_t serial) {
  if (serial != serial_) return;
  finish_body();
  core_->bodies.give_back(std::exchange(body_bytes_held_, 0));
}

void Connection::arm(Timer& timer, std::chrono::milliseconds delay, void (Connection::*expired)()) {
  timer.expires_after(delay);
  timer.async_wait([pending = pending(), &timer, expired](error_code error) mutable {
    const auto self = pending.take();
    // The timer may have been re-armed after this wait expired: ignore the old expiry.
    if (!error && timer.expiry() <= std::chrono::steady_clock::now())
      self->guarded([&] { (self.get()->*expired)(); });
  });
}

void Connection::disarm(Timer& timer) {
  timer.expires_at(std::chrono::steady_clock::time_point::max());
}

void Connection::read_timed_out() {
  if (state_ != State::kHeader && state_ != State::kBody) return close();
  timed_out_ = true;
  cancel_read();
}

}  // namespace valora::server
