// A client's TLS connection: its handshake, then the bytes both ways between the client and a pair
// of sockets. The HTTP server has the other end of the pair, as if there were no TLS: its
// connections cancel and resume reads, which a TLS stream doesn't survive.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "server/http/connection.h"
#include "server/http/listener.h"
#include "server/tls/tls_contexts.h"

namespace valora::server {

// All work runs on the socket's strand. Methods for other threads post to it.
class TlsRelay final : public std::enable_shared_from_this<TlsRelay> {
 public:
  using Socket = Connection::Socket;
  // Gets the server's end of the pair once the handshake is done. On a server thread.
  using Ready = std::function<void(Socket plain, PeerName peer)>;

  TlsRelay(Socket client, PeerName peer, std::shared_ptr<TlsContexts::Context> context,
           std::shared_ptr<HttpCore> core, Ready ready);
  ~TlsRelay();

  void start();
  // Any thread.
  bool shaking_hands() const { return shaking_hands_; }
  // Any thread. Ends a handshake. Otherwise sends the server's remaining bytes, as long as the
  // client takes some of them every second.
  void finish();
  // Any thread. No effect if the handshake is done.
  void end_handshake();

 private:
  using ErrorCode = boost::system::error_code;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        Connection::Executor>;
  using Step = void (TlsRelay::*)(ErrorCode error, size_t bytes);

  // Holds the relay for an operation under way. An operation that is lost with an exception ends
  // the connection.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<TlsRelay> relay) : relay_(std::move(relay)) {}
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (relay_) relay_->break_off();
    }
    std::shared_ptr<TlsRelay> take() { return std::exchange(relay_, nullptr); }

   private:
    std::shared_ptr<TlsRelay> relay_;
  };
  auto then(Step step);
  template <typename Work>
  void guarded(Work work) noexcept;
  void arm(Timer& timer, std::chrono::milliseconds delay);
  static void disarm(Timer& timer);

  void on_handshake(ErrorCode error, size_t);
  void pair_up();
  // From the client to the server.
  void read_client();
  void on_client_bytes(ErrorCode error, size_t bytes);
  void client_finished();
  void on_client_refused(ErrorCode error, size_t);
  void on_server_took(ErrorCode error, size_t);
  // From the server to the client.
  void read_server();
  void on_server_bytes(ErrorCode error, size_t bytes);
  void on_client_took(ErrorCode error, size_t);
  // The end: the server has closed its end.
  void on_said_goodbye(ErrorCode error, size_t);
  void on_late_bytes(ErrorCode error, size_t);
  void close() noexcept;
  void break_off() noexcept;

  std::shared_ptr<HttpCore> core_;
  std::shared_ptr<TlsContexts::Context> context_;
  Ready ready_;
  const PeerName peer_;
  boost::asio::ssl::stream<Socket> client_;
  Socket server_;
  Timer timer_;        // of the handshake and the end
  Timer write_timer_;  // of a client that does not read
  std::atomic<bool> shaking_hands_{true};
  bool finishing_ = false;
  bool ending_ = false;  // the server has closed its end
  bool closed_ = false;
  std::array<char, size_t{16} << 10> up_, down_;
};

}  // namespace valora::server
