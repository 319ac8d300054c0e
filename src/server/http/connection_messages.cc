#include "server/http/connection_messages.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "base/fault.h"
#include "server/http/inner_exchange.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

// A silent client is asked whether it is there, and has as long to answer.
constexpr std::chrono::milliseconds kSilence{30'000};
constexpr std::chrono::milliseconds kClosingTime{5'000};
constexpr size_t kPartBytes = size_t{64} << 10;
constexpr size_t kKeyLength = 24;  // of 16 bytes in base64

// The next message would have the same error.
bool is_final(int status) { return status == 401 || status == 403 || status == 404; }

}  // namespace

// The header of the POST request that each message is.
bool Connection::becomes_messages() {
  if (!websocket::is_upgrade(parser_->get())) return false;
  HttpRequest post = request_;
  post.method = "POST";
  if (!core_->handler->takes_messages(post)) return false;
  std::erase_if(post.headers,
                [](const auto& header) { return same_header_name(header.first, "content-type"); });
  post.headers.emplace_back("Content-Type", "image/*");
  request_ = std::move(post);
  return true;
}

void Connection::accept_messages() {
  if (!parser_->is_done() || buffer_.size() > 0)
    return refuse(400, "bytes came before the answer to the upgrade");
  if (request_.header("sec-websocket-key").size() != kKeyLength)
    return refuse(400, "the Sec-WebSocket-Key is missing or malformed");
  if (request_.header("sec-websocket-version") != "13") {
    HttpResponse refused = error_response(426, "the version of the WebSocket protocol must be 13");
    refused.headers.emplace_back("Sec-WebSocket-Version", "13");
    return respond_without_handler(refused);
  }
  state_ = State::kMessages;
  arm(read_timer_, kClosingTime, &Connection::messages_silent);
  messages_ = std::make_unique<Messages>(stream_, request_);
  auto& stream = messages_->stream;
  // Beast's own timers and pings hold no reference to the connection.
  stream.set_option(websocket::stream_base::timeout{websocket::stream_base::none(),
                                                    websocket::stream_base::none(), false});
  stream.set_option(websocket::stream_base::decorator([this](websocket::response_type& response) {
    response.set(boost::beast::http::field::server, "valora/" VALORA_VERSION);
    for (const auto& [name, value] : common_headers_) response.set(name, value);
  }));
  stream.control_callback([this](auto, auto) { on_control_frame(); });
  stream.read_message_max(
      core_->handler->max_body_bytes(request_).value_or(core_->limits.max_body_bytes));
  stream.text(true);
  stream.async_accept(parser_->get(), cancellable([pending = pending()](error_code error) mutable {
                        const auto self = pending.take();
                        self->guarded([&] { self->on_accepted(error); });
                      }));
}

void Connection::on_accepted(ErrorCode error) {
  if (state_ != State::kMessages) return;
  if (error) return close();
  status_ = 101;
  answer_complete_ = true;
  log_exchange();
  log_line_.replace(0, log_line_.find(' '), "POST");  // of the messages
  in_exchange_ = false;
  parser_.reset();
  core_->exchange_ended();
  next_message();
}

// ---- reading ----

void Connection::next_message() {
  if (core_->close_after_responses) return end_messages(kGoingAway, "the server stops");
  core_->mark_idle(place_);
  messages_->reading = true;
  messages_->begun = messages_->pinged = false;
  arm(read_timer_, kSilence, &Connection::messages_silent);
  read_part();
}

void Connection::read_part() {
  messages_->stream.async_read_some(
      messages_->message, kPartBytes,
      cancellable([pending = pending()](error_code error, size_t) mutable {
        const auto self = pending.take();
        self->guarded([&] { self->on_part(error); });
      }));
}

// Errors include the client's close, and a message beyond the limit, after which Beast closes.
void Connection::on_part(ErrorCode error) {
  if (state_ != State::kMessages) return;
  if (error) return messages_ended();
  if (messages_->ending) return;
  core_->end_waiting(place_, element_);
  if (!std::exchange(messages_->begun, true)) body_began_ = std::chrono::steady_clock::now();
  const size_t received = messages_->message.size();
  if (const auto refusal = hold_body(received))
    return end_messages(kTryAgainLater, refusal->message);
  if (messages_->stream.is_message_done()) return hand_over_message();
  arm(read_timer_, body_time_left(received), &Connection::messages_silent);
  read_part();
}

void Connection::hand_over_message() {
  messages_->reading = false;
  disarm(read_timer_);
  finish_body();
  HttpRequest request = messages_->head;
  request.id = request_.id = request_id_from({});
  request.body = boost::beast::buffers_to_string(messages_->message.data());
  messages_->message.clear();
  messages_->message.shrink_to_fit();
  begin_exchange();
  path_ = request.path;
  body_bytes_ = request.body.size();
  auto post = [self = shared_from_this()](std::function<void()> work) {
    if (!self->core_->stopped) asio::post(self->stream_.get_executor(), std::move(work));
  };
  // Only a lack of memory loses an answer (Exchange).
  auto done = [self = shared_from_this()](std::optional<HttpResponse> response) noexcept {
    if (self->core_->stopped) return;
    try {
      asio::dispatch(self->stream_.get_executor(),
                     [pending = self->pending(), response = std::move(response)]() mutable {
                       const auto connection = pending.take();
                       connection->guarded([&] {
                         connection->answer_message(response ? std::move(*response)
                                                             : error_response(out_of_memory()));
                       });
                     });
    } catch (const std::exception&) {
      self->give_up();
    }
  };
  deliver(std::move(request), std::make_shared<InnerExchange>(std::move(post), std::move(done)));
}

// ---- answering ----

void Connection::answer_message(HttpResponse response) {
  if (state_ != State::kMessages) return;
  release_body(serial_);
  status_ = response.status;
  messages_->answer = std::move(response.body);
  arm(write_timer_, core_->limits.write_timeout, &Connection::write_timed_out);
  messages_->stream.async_write(asio::buffer(messages_->answer),
                                [pending = pending()](error_code error, size_t) mutable {
                                  const auto self = pending.take();
                                  self->guarded([&] { self->on_message_answered(error); });
                                });
}

void Connection::on_message_answered(ErrorCode error) {
  if (state_ != State::kMessages) return;
  disarm(write_timer_);
  if (error) return close();
  bytes_out_ = messages_->answer.size();
  answer_complete_ = true;
  log_exchange();
  in_exchange_ = false;
  core_->exchange_ended();
  if (is_final(status_))
    end_messages(websocket::close_code::policy_error, "see the last message");
  else
    next_message();
}

// ---- ending ----

// Within a read.
void Connection::on_control_frame() {
  if (state_ != State::kMessages || !messages_->awaited() || messages_->ending) return;
  messages_->pinged = false;
  arm(read_timer_, kSilence, &Connection::messages_silent);
}

void Connection::messages_silent() {
  if (state_ != State::kMessages) return;
  if (!messages_->awaited() || messages_->ending || std::exchange(messages_->pinged, true))
    return close();
  arm(read_timer_, kSilence, &Connection::messages_silent);
  messages_->stream.async_ping({}, [pending = pending()](error_code) mutable { pending.take(); });
}

// The client is told why; then the connection ends.
void Connection::end_messages(uint16_t code, std::string_view reason) {
  if (std::exchange(messages_->ending, true)) return;
  arm(read_timer_, kClosingTime, &Connection::messages_silent);
  const websocket::close_reason why(static_cast<websocket::close_code>(code),
                                    {reason.data(), reason.size()});
  messages_->stream.async_close(
      why, asio::bind_cancellation_slot(messages_->closing.slot(),
                                        [pending = pending()](error_code) mutable {
                                          const auto self = pending.take();
                                          self->guarded([&] { self->messages_ended(); });
                                        }));
}

}  // namespace valora::server
