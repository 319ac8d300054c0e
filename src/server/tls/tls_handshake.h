// A client that has no connection of the HTTP server: because its TLS handshake is not done yet, or
// because there is no place for it, so that it gets a last answer.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/client_stream.h"
#include "server/http/core.h"
#include "server/http/listener.h"

namespace valora::server {

// All work runs on the stream's strand. Methods for other threads post to it.
class TlsHandshake final : public std::enable_shared_from_this<TlsHandshake>, public Rescuable {
 public:
  // Receives the stream after the handshake. Called on a server thread.
  using Ready = std::function<void(ClientStream stream, const PeerName& peer)>;

  TlsHandshake(ClientStream stream, PeerName peer, std::shared_ptr<HttpCore> core);
  ~TlsHandshake() override;

  // Call one of them, once.
  void start(Ready ready);
  // Sends the answer and closes the stream, whose handshake is done.
  void refuse(std::string answer);
  // Thread-safe. False once the stream was passed on or closed.
  bool is_open() const { return open_; }
  // Thread-safe. No effect if the stream was passed on.
  void end();
  void rescue() override { end(); }

 private:
  using ErrorCode = boost::system::error_code;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        ClientStream::Executor>;
  using Step = void (TlsHandshake::*)(ErrorCode error);

  // Keeps the object alive during an asynchronous operation. If an exception loses the operation,
  // ends it.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<TlsHandshake> handshake) : handshake_(std::move(handshake)) {}
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (handshake_) handshake_->give_up();
    }
    std::shared_ptr<TlsHandshake> take() { return std::exchange(handshake_, nullptr); }

   private:
    std::shared_ptr<TlsHandshake> handshake_;
  };
  auto then(Step step);
  template <typename Work>
  void on_strand(Work work);
  template <typename Work>
  void guarded(Work work) noexcept;
  void arm(std::chrono::milliseconds delay);
  void on_timer(ErrorCode error);
  void on_handshake(ErrorCode error);
  void on_answered(ErrorCode error);
  void on_discarded(ErrorCode error);
  void give_up() noexcept;
  void close() noexcept;

  std::shared_ptr<HttpCore> core_;
  const PeerName peer_;
  std::optional<ClientStream> stream_;  // empty: passed on
  Timer timer_;
  Ready ready_;
  std::string answer_;
  std::array<char, size_t{4} << 10> discarded_;
  std::atomic<bool> open_ = true, given_up_ = false;
};

}  // namespace valora::server
