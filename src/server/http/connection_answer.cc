// The part of Connection that writes answers.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/beast/http/status.hpp>
#include <ctime>

#include "base/fault.h"
#include "server/http/connection.h"
#include "server/openai/errors.h"

namespace valora::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

// Smaller whole answers are not counted, so errors can always be sent.
constexpr size_t kUncountedBytes = size_t{64} << 10;

}  // namespace

void Connection::begin_exchange() {
  ++serial_;
  core_->exchange_began();
  in_exchange_ = true;
  body_unread_ = head_sent_ = chunked_ = answer_complete_ = false;
  status_ = 0;
  bytes_out_ = body_bytes_ = 0;
  path_.clear();
  began_ = std::chrono::steady_clock::now();
  common_headers_.clear();
  common_headers_.emplace_back("X-Request-Id", request_.id);
}

void Connection::refuse(int status, std::string_view message) {
  if (!in_exchange_) {
    request_.id = request_id_from({});
    log_line_ = "-";
    http11_ = true;
    head_only_ = false;
    begin_exchange();
  }
  body_unread_ = true;
  respond_without_handler(error_response(status, message));
}

void Connection::respond_without_handler(const HttpResponse& response) {
  if (body_unread_ || !parser_->is_done()) keep_alive_ = false;
  state_ = State::kAnswering;
  disarm(read_timer_);
  respond(serial_, response);
}

void Connection::send_head(const HttpResponse& response, std::optional<size_t> length) {
  if (core_->close_after_responses) keep_alive_ = false;
  head_sent_ = true;
  status_ = response.status;
  const auto reason = http::obsolete_reason(static_cast<http::status>(response.status));
  auto out = std::back_inserter(pending_);
  fmt::format_to(out,
                 "HTTP/1.1 {} {}\r\nServer: valora/{}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\n",
                 response.status, std::string_view(reason.data(), reason.size()), VALORA_VERSION,
                 fmt::gmtime(std::time(nullptr)));
  if (!response.content_type.empty())
    fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
  for (const Headers* headers : {&response.headers, static_cast<const Headers*>(&common_headers_)})
    for (const auto& [name, value] : *headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  if (length && response.status != 204 && response.status != 304)
    fmt::format_to(out, "Content-Length: {}\r\n", *length);
  if (chunked_) fmt::format_to(out, "Transfer-Encoding: chunked\r\n");
  fmt::format_to(out, "Connection: {}\r\n\r\n", keep_alive_ ? "keep-alive" : "close");
}

void Connection::respond(uint64_t serial, const HttpResponse& response) {
  if (!answering(serial) || head_sent_) return;
  if (response.body.size() > kUncountedBytes && !hold_outbound(response.body.size()))
    return respond(serial,
                   error_response(503, "clients do not read their answers; try again later"));
  send_head(response, response.body.size());
  if (!head_only_) pending_ += response.body;
  answer_complete_ = true;
  flush();
}

void Connection::begin_stream(uint64_t serial, const HttpResponse& head) {
  if (!answering(serial) || head_sent_) return;
  chunked_ = http11_;
  if (!chunked_) keep_alive_ = false;  // closing the connection marks the end of the body
  send_head(head, std::nullopt);
  flush();
}

void Connection::write(uint64_t serial, std::string bytes) {
  if (!answering(serial) || !head_sent_ || answer_complete_ || bytes.empty()) return;
  if (pending_.size() + sending_.size() - sent_ + bytes.size() > core_->limits.max_outbound_bytes) {
    spdlog::warn("closed the connection of {}: it reads its stream too slowly", request_.peer);
    return close();
  }
  if (!hold_outbound(bytes.size())) {
    spdlog::warn("closed the connection of {}: clients do not read their answers", request_.peer);
    return close();
  }
  if (chunked_)
    fmt::format_to(std::back_inserter(pending_), "{:x}\r\n{}\r\n", bytes.size(), bytes);
  else
    pending_ += bytes;
  flush();
}

void Connection::abort(uint64_t serial) {
  if (answering(serial)) close();
}

void Connection::end_stream(uint64_t serial) {
  if (!answering(serial) || !head_sent_ || answer_complete_) return;
  if (chunked_) pending_ += "0\r\n\r\n";
  answer_complete_ = true;
  flush();
}

void Connection::on_disconnect(uint64_t serial, std::function<void()> left) {
  if (serial != serial_ || answer_complete_) return;
  if (state_ == State::kClosed)
    left();
  else
    left_ = std::move(left);
}

// The handler has destroyed its exchange: if it has not answered by now, it never will. Only lack
// of memory is answered here; other faults are answered where they are detected.
void Connection::abandon(uint64_t serial) {
  if (!answering(serial) || answer_complete_) return;
  if (head_sent_)
    close();
  else
    respond(serial, error_response(out_of_memory()));
}

bool Connection::hold_outbound(size_t bytes) {
  if (!core_->outbound.take(bytes)) return false;
  outbound_held_ += bytes;
  return true;
}

void Connection::release_outbound(size_t unsent) {
  if (outbound_held_ <= unsent) return;
  core_->outbound.give_back(outbound_held_ - unsent);
  outbound_held_ = unsent;
}

void Connection::flush() {
  if (writing_) return;
  if (sent_ == sending_.size()) {
    if (sending_.capacity() > kUncountedBytes) sending_ = {};  // an idle connection holds no buffer
    sending_.clear();
    sent_ = 0;
    release_outbound(pending_.size());
    if (pending_.empty()) {
      disarm(write_timer_);
      if (answer_complete_) finish_exchange();
      return;
    }
    sending_.swap(pending_);
  }
  writing_ = true;
  arm(write_timer_, core_->limits.write_timeout, &Connection::write_timed_out);
  stream_.async_write_some(asio::buffer(sending_) + sent_,
                           [pending = pending()](error_code error, size_t bytes) mutable {
                             const auto self = pending.take();
                             self->guarded([&] { self->on_written(error, bytes); });
                           });
}

void Connection::on_written(ErrorCode error, size_t bytes) {
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return close();
  sent_ += bytes;
  bytes_out_ += bytes;
  flush();
}

void Connection::finish_exchange() {
  log_exchange();
  in_exchange_ = false;
  left_ = nullptr;
  release_body(serial_);
  parser_.reset();
  core_->exchange_ended();
  if (keep_alive_ && !core_->close_after_responses)
    next_request();
  else
    linger();
}

void Connection::log_exchange() const {
  bool routine = false;
  for (const char* path : {" /health", " /ready", " /ping", " /metrics", " /v1/stats"})
    routine |= log_line_.ends_with(path);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began_;
  spdlog::log(routine ? spdlog::level::debug : spdlog::level::info,
              "{} \"{}\" {} {} B {:.1f} ms {}", request_.peer, log_line_,
              answer_complete_ ? status_ : 499, bytes_out_, took.count(),
              common_headers_.front().second);
  core_->handler->on_answered({log_line_.substr(0, log_line_.find(' ')), path_,
                               answer_complete_ ? status_ : 499, body_bytes_, bytes_out_,
                               took.count() / 1e3});
}

}  // namespace valora::server
