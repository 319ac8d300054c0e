#include "server/http/connection.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "server/http/framing.h"
#include "server/http/socket_exchange.h"

namespace valora::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kWatchBytes = size_t{4} << 10;
constexpr size_t kDrainBytes = size_t{64} << 10;
constexpr size_t kMaxPipelinedBytes = size_t{64} << 10;
// How often to look whether a client has left whose pipelined bytes are not read.
constexpr std::chrono::milliseconds kDepartureCheck{1'000};
// For the header of a status page on a connection beyond the limit.
constexpr std::chrono::milliseconds kStatusTime{1'000};
// How long to read and discard input after an early answer. Closing with unread input would send a
// TCP reset, which can destroy the answer.
constexpr std::chrono::milliseconds kLingerTime{5'000};

std::string_view as_view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::optional<std::string> path_of(std::string_view target) {
  if (const size_t scheme = target.find("://"); scheme != target.npos && target[0] != '/') {
    const size_t slash = target.find('/', scheme + 3);
    target = slash == target.npos ? "/" : target.substr(slash);
  }
  return percent_decode(target.substr(0, target.find('?')));
}

bool peer_went_away(error_code error) {
  return error == http::error::end_of_stream || error == http::error::partial_message ||
         error.category() != make_error_code(http::error::end_of_stream).category();
}

}  // namespace

Connection::Connection(Socket socket, std::shared_ptr<HttpCore> core, bool status_only)
    : core_(std::move(core)),
      socket_(std::move(socket)),
      read_timer_(socket_.get_executor()),
      write_timer_(socket_.get_executor()),
      buffer_(core_->limits.max_header_bytes + kMaxPipelinedBytes + kDrainBytes),
      status_only_(status_only) {}

Connection::~Connection() { core_->remove(this); }

void Connection::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    self->socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    const auto peer = self->socket_.remote_endpoint(ignored);
    self->client_ = peer.address().to_string();
    self->request_.peer = fmt::format("{}:{}", peer.address().to_string(), peer.port());
    self->next_request();
  });
}

void Connection::stop_reading() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    error_code ignored;
    if (self->state_ == State::kIdle || self->state_ == State::kHeader)
      self->close();
    else if (self->state_ == State::kBody)
      self->socket_.cancel(ignored);
  });
}

void Connection::close_now() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

// ---- reading ----

void Connection::next_request() {
  state_ = State::kIdle;
  arm(read_timer_, status_only_ ? kStatusTime : core_->limits.keep_alive_timeout,
      &Connection::read_timed_out);
  if (watching_) {
    // Pipelined bytes are already buffered. Cancel the pending read; on_watched() continues with
    // them.
    error_code ignored;
    if (buffer_.size() > 0) socket_.cancel(ignored);
    return;
  }
  if (buffer_.size() > 0)
    read_header();
  else if (half_closed_)
    close();
  else
    watch();
}

void Connection::watch() {
  if (watching_ || half_closed_) return;
  if (buffer_.size() >= kMaxPipelinedBytes)
    return arm(read_timer_, kDepartureCheck, &Connection::check_departure);
  watching_ = true;
  socket_.async_read_some(buffer_.prepare(state_ == State::kLingering ? kDrainBytes : kWatchBytes),
                          [self = shared_from_this()](error_code error, size_t bytes) {
                            self->on_watched(error, bytes);
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

// A peer that has closed its connection refuses what it is sent. So it is sent what has no meaning:
// an interim response, or an empty comment in a stream of events.
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

void Connection::read_header() {
  // An empty line or two before a request is allowed.
  while (buffer_.size() > 0 && (*static_cast<const char*>(buffer_.cdata().data()) == '\r' ||
                                *static_cast<const char*>(buffer_.cdata().data()) == '\n'))
    buffer_.consume(1);
  if (buffer_.size() == 0) return half_closed_ ? close() : watch();
  state_ = State::kHeader;
  timed_out_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(core_->limits.max_header_bytes));
  parser_->body_limit(boost::none);  // on_header() checks it and can report the limit
  arm(read_timer_, status_only_ ? kStatusTime : core_->limits.header_timeout,
      &Connection::read_timed_out);
  http::async_read_header(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, size_t) { self->on_header(error); });
}

void Connection::on_header(ErrorCode error) {
  if (state_ != State::kHeader) return;
  if (error) {
    if (timed_out_) return refuse(408, "the request header took too long");
    if (peer_went_away(error)) return close();
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refuse(431, fmt::format("the request header is larger than {} bytes",
                                     core_->limits.max_header_bytes));
    return refuse(400, "malformed HTTP request: " + error.message());
  }
  const auto& message = parser_->get();
  request_.method = as_view(message.method_string());
  request_.headers.clear();
  for (const auto& field : message)
    request_.headers.emplace_back(as_view(field.name_string()), as_view(field.value()));
  request_.id = request_id_from(request_.header("x-request-id"));
  const std::string_view target = as_view(message.target());
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
  request_.path = std::move(*path);
  if (status_only_) {
    keep_alive_ = false;
    if (!core_->handler->is_status(request_))
      return refuse(503, "the server has too many connections; try again later");
  }
  if (auto answer = core_->handler->screen(request_, common_headers_)) return answer_early(*answer);
  const size_t limit = core_->limits.max_body_bytes;
  if (const uint64_t declared = parser_->content_length().value_or(0); declared > limit)
    return refuse(413, fmt::format("the request body of {} bytes is larger than the allowed {}",
                                   declared, limit));
  parser_->body_limit(limit);
  if (!parser_->is_done() && same_header_name(request_.header("expect"), "100-continue")) {
    pending_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
  body_began_ = std::chrono::steady_clock::now();
  read_body();
}

// Counts the bytes received, not Content-Length: a client can claim any length at no cost.
bool Connection::count_body() {
  const size_t bytes = parser_->get().body().size();
  if (bytes <= body_bytes_held_) return true;
  const size_t more = bytes - body_bytes_held_;
  if (!core_->unfinished_bodies.take(client_, more)) {
    refuse(429, "too many request bodies of this client are incomplete; try again later");
    return false;
  }
  unfinished_bytes_held_ += more;
  if (!core_->bodies.take(more)) {
    refuse(503, "the server holds too many request bodies; try again later");
    return false;
  }
  body_bytes_held_ = bytes;
  return true;
}

void Connection::finish_body() {
  core_->unfinished_bodies.give_back(client_, std::exchange(unfinished_bytes_held_, 0));
}

// A body must come at a least rate: else it could hold its connection for ever, byte by byte.
std::chrono::milliseconds Connection::body_time_left() const {
  using std::chrono::milliseconds;
  const HttpLimits& limits = core_->limits;
  const milliseconds allowed = limits.body_timeout + milliseconds(parser_->get().body().size() *
                                                                  1000 / limits.min_body_rate);
  const auto passed =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - body_began_);
  return std::max(milliseconds(0), std::min(limits.body_idle_timeout, allowed - passed));
}

void Connection::read_body() {
  if (parser_->is_done()) {
    if (count_body()) hand_over();
    return;
  }
  state_ = State::kBody;
  arm(read_timer_, body_time_left(), &Connection::read_timed_out);
  http::async_read_some(
      socket_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, size_t) { self->on_body(error); });
}

void Connection::on_body(ErrorCode error) {
  if (state_ != State::kBody) return;
  if (error) {
    if (timed_out_) return refuse(408, "the request body took too long");
    if (error == asio::error::operation_aborted && core_->close_after_responses)
      return refuse(503, "the server is draining");
    if (peer_went_away(error)) return close();
    if (error == http::error::body_limit)
      return refuse(413, fmt::format("the request body is larger than the allowed {} bytes",
                                     core_->limits.max_body_bytes));
    return refuse(400, "malformed HTTP request body: " + error.message());
  }
  if (count_body()) read_body();
}

void Connection::hand_over() {
  state_ = State::kAnswering;
  disarm(read_timer_);
  finish_body();
  request_.body = std::move(parser_->get().body());
  const std::string peer = request_.peer;
  asio::post(core_->handlers,
             [core = core_, request = std::move(request_),
              exchange = std::make_shared<SocketExchange>(shared_from_this(), serial_)]() mutable {
               core->handler->handle(std::move(request), std::move(exchange));
             });
  request_ = HttpRequest{};
  request_.peer = peer;
  watch();
}

// ---- ending ----

void Connection::linger() {
  if (half_closed_) return close();
  state_ = State::kLingering;
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  arm(read_timer_, kLingerTime, &Connection::read_timed_out);
  if (!watching_) drain_input();
}

void Connection::drain_input() {
  buffer_.clear();
  watch();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  disarm(read_timer_);
  disarm(write_timer_);
  error_code ignored;
  socket_.close(ignored);
  release_outbound(0);
  core_->remove(this);
  if (!in_exchange_) return;
  in_exchange_ = false;
  log_exchange();
  release_body(serial_);
  if (auto left = std::exchange(left_, nullptr)) left();
  core_->exchange_ended();
}

void Connection::release_body(uint64_t serial) {
  if (serial != serial_) return;
  finish_body();
  core_->bodies.give_back(std::exchange(body_bytes_held_, 0));
}

void Connection::arm(Timer& timer, std::chrono::milliseconds delay, void (Connection::*expired)()) {
  timer.expires_after(delay);
  timer.async_wait([self = shared_from_this(), &timer, expired](error_code error) {
    // The timer may have been re-armed after this wait had expired: ignore the old expiry.
    if (!error && timer.expiry() <= std::chrono::steady_clock::now()) (self.get()->*expired)();
  });
}

void Connection::disarm(Timer& timer) {
  timer.expires_at(std::chrono::steady_clock::time_point::max());
}

void Connection::read_timed_out() {
  if (state_ != State::kHeader && state_ != State::kBody) return close();
  timed_out_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

}  // namespace valora::server
