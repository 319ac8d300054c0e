// One client's connection: reads requests, writes answers, detects when the client disconnects.
#pragma once

#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/client_stream.h"
#include "server/http/core.h"
#include "server/http/http.h"
#include "server/http/listener.h"

namespace valora::server {

// All work runs on the stream's strand. Methods for other threads post to it.
class Connection final : public std::enable_shared_from_this<Connection>, public Rescuable {
 public:
  // status_only: the connection is beyond the limit and serves a single request for a status page.
  Connection(ClientStream stream, const PeerName& peer, std::shared_ptr<HttpCore> core,
             bool status_only);
  ~Connection() override;

  void start();
  // Thread-safe. A request that is still being read is rejected; one being answered continues.
  void stop_reading();
  void close_now();
  // Thread-safe. Closes the connection unless a request has begun in the meantime.
  void close_if_idle();
  // Removes the connection from HttpCore's list. HttpCore calls this with its lock held.
  void remove_from_idle(HttpCore::Places& waiting) noexcept {
    place_.splice(place_.end(), waiting, element_);
  }
  // Thread-safe. Called when running out of memory has lost an operation: closes the connection as
  // soon as memory is available.
  void give_up() noexcept;
  void rescue() override { close_now(); }

 private:
  friend class SocketExchange;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        ClientStream::Executor>;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using ErrorCode = boost::system::error_code;
  static constexpr size_t kDrainBytes = size_t{64} << 10;
  static constexpr size_t kMaxPipelinedBytes = size_t{64} << 10;
  enum class State { kIdle, kHeader, kBody, kAnswering, kMessages, kLingering, kClosed };

  // Reading. watch() keeps a read pending while idle or answering. It detects new requests and
  // disconnects.
  void next_request();
  void watch();
  void on_watch_read(ErrorCode error, size_t bytes);
  void on_peer_eof();
  void check_for_disconnect();
  void probe_peer();
  void read_header();
  void on_header(ErrorCode error);
  static bool is_disconnect(ErrorCode error);
  size_t field_bytes() const;
  void refuse_body(ErrorCode error);
  struct Refusal {
    int status;
    const char* message;
  };
  std::optional<Refusal> hold_body(size_t bytes);
  void finish_body();
  std::chrono::milliseconds body_time_left(size_t received) const;
  void read_body();
  void on_body(ErrorCode error);
  void hand_over();
  void deliver(HttpRequest request, std::shared_ptr<Exchange> exchange);

  // Messages of a WebSocket: each is a request with the header of the first one, answered by a
  // message. The next is read after the answer.
  bool becomes_messages();
  void accept_messages();
  void on_accepted(ErrorCode error);
  void next_message();
  void read_part();
  void on_part(ErrorCode error);
  void hand_over_message();
  void answer_message(HttpResponse response);
  void on_message_answered(ErrorCode error);
  void on_control_frame();
  void messages_silent();
  void end_messages(uint16_t code, std::string_view reason);
  void messages_ended();

  // Answering. `serial` identifies the exchange: late calls for an earlier one are ignored.
  void respond(uint64_t serial, const HttpResponse& response);
  void begin_stream(uint64_t serial, const HttpResponse& head);
  void write(uint64_t serial, std::string bytes);
  void end_stream(uint64_t serial);
  void release_body(uint64_t serial);
  void abort(uint64_t serial);
  void on_disconnect(uint64_t serial, std::function<void()> left);
  void abandon(uint64_t serial);
  bool answering(uint64_t serial) const { return state_ == State::kAnswering && serial == serial_; }

  // Answers without a handler. Closes the connection afterwards if the body was not read.
  void refuse(int status, std::string_view message);
  void respond_without_handler(const HttpResponse& response);
  void begin_exchange();
  void send_head(const HttpResponse& response, std::optional<size_t> length);
  bool hold_outbound(size_t bytes);
  void release_outbound(size_t unsent);
  void flush();
  void on_written(ErrorCode error, size_t bytes);
  void finish_exchange();
  void log_exchange() const;

  // Runs a step of this connection. If it throws (most likely out of memory), only this connection
  // ends.
  template <typename Work>
  void guarded(Work work) noexcept;
  // Keeps the connection alive during an asynchronous operation. If an exception in asio loses the
  // operation, the destructor runs without take() and closes the connection, which nothing else
  // would wake.
  class Pending {
   public:
    explicit Pending(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
    Pending(Pending&&) = default;
    Pending& operator=(Pending&&) = delete;
    ~Pending() {
      if (connection_) connection_->give_up();
    }
    std::shared_ptr<Connection> take() { return std::exchange(connection_, nullptr); }

   private:
    std::shared_ptr<Connection> connection_;
  };
  Pending pending() { return Pending(shared_from_this()); }
  // A handler of reads, which cancel_read() ends.
  template <typename Handler>
  auto cancellable(Handler handler) {
    return boost::asio::bind_cancellation_slot(reading_.slot(), std::move(handler));
  }
  void cancel_read() { reading_.emit(boost::asio::cancellation_type::terminal); }
  void release_budgets() noexcept;
  void linger();
  void on_finished();
  void drain_input();
  void close() noexcept;

  void arm(Timer& timer, std::chrono::milliseconds delay, void (Connection::*expired)());
  void disarm(Timer& timer);
  void read_timed_out();
  void write_timed_out() { close(); }

  std::shared_ptr<HttpCore> core_;
  HttpCore::Places place_{this};  // guarded by core_, like its element
  const HttpCore::Places::iterator element_ = place_.begin();
  std::atomic<bool> given_up_ = false;
  ClientStream stream_;
  boost::asio::cancellation_signal reading_;
  Timer read_timer_;
  Timer write_timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  size_t header_field_bytes_ = 0;
  size_t chunk_extension_bytes_ = 0;  // of the request's body so far
  std::function<void(uint64_t, boost::beast::string_view, ErrorCode&)> count_extensions_;
  const bool status_only_;
  State state_ = State::kIdle;
  bool read_pending_ = false;
  bool timed_out_ = false;
  bool error_wait_pending_ = false;
  bool half_closed_ = false;  // the peer will send nothing more

  HttpRequest request_;
  Headers common_headers_;
  std::string client_;  // the peer's address, without the port; or "unix"
  size_t body_bytes_held_ = 0;
  size_t body_limit_ = 0;
  size_t unfinished_bytes_held_ = 0;  // of body_bytes_held_
  bool header_began_ = false;         // including any empty lines before it
  std::chrono::steady_clock::time_point body_began_{};
  uint64_t serial_ = 0;
  bool in_exchange_ = false;

  bool http11_ = true;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool body_unread_ = false;
  bool head_sent_ = false;
  bool chunked_ = false;
  bool answer_complete_ = false;
  std::function<void()> left_;
  std::string pending_;  // to be sent next
  std::string sending_;  // being sent; the first sent_ bytes are out
  size_t sent_ = 0;
  size_t outbound_held_ = 0;  // bytes of pending_ and sending_ counted in HttpCore::outbound
  bool writing_ = false;

  struct Messages;
  std::unique_ptr<Messages> messages_;

  int status_ = 0;
  size_t bytes_out_ = 0;
  std::string path_;
  size_t body_bytes_ = 0;
  std::string log_line_;  // method and path, kept because request_ is moved to the handler
  std::chrono::steady_clock::time_point began_{};
};

template <typename Work>
void Connection::guarded(Work work) noexcept {
  try {
    work();
  } catch (const std::exception& e) {
    spdlog::error("an HTTP connection failed: {}", e.what());
    close();
  }
}

}  // namespace valora::server
