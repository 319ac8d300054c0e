// The part of Connection that reads request bodies within their limits and hands requests to
// handlers.
#include <fmt/format.h>

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "server/http/connection.h"
#include "server/http/socket_exchange.h"
#include "server/openai/errors.h"

namespace valora::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

// A request on its way to the handler.
struct HandedOver {
  std::shared_ptr<HttpCore> core;
  HttpRequest request;
  std::shared_ptr<Exchange> exchange;

  // If memory runs out, the exchange answers when it is destroyed.
  void run() {
    try {
      handle();
    } catch (const std::exception& e) {
      spdlog::error("a request failed: {}", e.what());
    }
  }
  void handle() {
    try {
      core->handler->handle(std::move(request), exchange);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      spdlog::error("a request failed: {}", e.what());
      exchange->respond(error_response(500, "the server failed while it read the request"));
    }
  }
};

}  // namespace

// Counts the bytes received so far, not Content-Length: claiming a length costs a client nothing.
std::optional<Connection::Refusal> Connection::hold_body(size_t bytes) {
  if (bytes <= body_bytes_held_) return std::nullopt;
  const size_t more = bytes - body_bytes_held_;
  if (!core_->unfinished_bodies.take(client_, more))
    return Refusal{429, "too many request bodies of this client are incomplete; try again later"};
  unfinished_bytes_held_ += more;
  if (!core_->bodies.take(more))
    return Refusal{503, "the server holds too many request bodies; try again later"};
  body_bytes_held_ = bytes;
  return std::nullopt;
}

void Connection::finish_body() {
  core_->unfinished_bodies.give_back(client_, std::exchange(unfinished_bytes_held_, 0));
}

// Enforces a minimum rate: otherwise a body sent byte by byte could hold its connection forever.
std::chrono::milliseconds Connection::body_time_left(size_t received) const {
  using std::chrono::milliseconds;
  const HttpLimits& limits = core_->limits;
  const milliseconds allowed =
      limits.body_timeout + milliseconds(received * 1000 / limits.min_body_rate);
  const auto passed =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - body_began_);
  return std::max(milliseconds(0), std::min(limits.body_idle_timeout, allowed - passed));
}

void Connection::read_body() {
  if (parser_->is_done()) {
    if (field_bytes() - header_field_bytes_ > core_->limits.max_header_bytes)
      return refuse_body(http::error::header_limit);
    if (const auto refusal = hold_body(parser_->get().body().size()))
      return refuse(refusal->status, refusal->message);
    return hand_over();
  }
  state_ = State::kBody;
  arm(read_timer_, body_time_left(parser_->get().body().size()), &Connection::read_timed_out);
  http::async_read_some(stream_, buffer_, *parser_,
                        cancellable([pending = pending()](error_code error, size_t) mutable {
                          const auto self = pending.take();
                          self->guarded([&] { self->on_body(error); });
                        }));
}

void Connection::on_body(ErrorCode error) {
  if (state_ != State::kBody) return;
  if (error) {
    if (timed_out_) return refuse(408, "timed out reading the request body");
    if (error == asio::error::operation_aborted && core_->close_after_responses)
      return refuse(503, "the server is draining");
    if (is_disconnect(error)) return close();
    return refuse_body(error);
  }
  if (const auto refusal = hold_body(parser_->get().body().size()))
    return refuse(refusal->status, refusal->message);
  read_body();
}

// Bytes of the header fields, and of the trailer fields once they are read.
size_t Connection::field_bytes() const {
  size_t bytes = 0;
  for (const auto& field : parser_->get())
    bytes += field.name_string().size() + field.value().size();
  return bytes;
}

void Connection::refuse_body(ErrorCode error) {
  // Only a field can fill the buffer: the parser removes body bytes as it reads them.
  const bool full = buffer_.size() >= buffer_.max_size();
  if (error == http::error::header_limit || (error == http::error::buffer_overflow && full))
    return refuse(431, fmt::format("the chunk extensions or trailers are larger than {} bytes",
                                   core_->limits.max_header_bytes));
  if (error == http::error::buffer_overflow)
    return refuse(503, "there is not enough memory for the request body; try again later");
  if (error == http::error::body_limit)
    return refuse(413,
                  fmt::format("the request body is larger than the allowed {} bytes", body_limit_));
  refuse(400, "malformed HTTP request body: " + error.message());
}

void Connection::hand_over() {
  state_ = State::kAnswering;
  disarm(read_timer_);
  finish_body();
  request_.body = std::move(parser_->get().body());
  body_bytes_ = request_.body.size();
  const std::string peer = request_.peer;
  deliver(std::move(request_), std::make_shared<SocketExchange>(shared_from_this(), serial_));
  request_ = HttpRequest{};
  request_.peer = peer;
  watch();
}

void Connection::deliver(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const std::string client = core_->handler->client_of(request);
  auto work =
      std::make_shared<HandedOver>(HandedOver{core_, std::move(request), std::move(exchange)});
  core_->handlers.post(client, body_bytes_, [work = std::move(work)] { work->run(); });
}

}  // namespace valora::server
