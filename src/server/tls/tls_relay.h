// A client's TLS connection: performs the handshake, then relays bytes both ways between the client
// and a socket pair. The HTTP server holds the other end of the pair, as if there were no TLS: its
// connections cancel and resume reads, which a TLS stream does not survive.
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
  // Receives the server's end of the pair after the handshake. Called on a server thread.
  using Ready = std::function<void(Socket plain, PeerName peer)>;

  TlsRelay(Socket client, PeerName peer, std::shared_ptr<TlsContexts::Context> context,
           std::shared_ptr<HttpCore> core, Ready ready);
  ~TlsRelay();

  void start();
  // Thread-safe.
  bool is_handshaking() const { return handshaking_; }
  // Thread-safe. Ends a handshake. Otherwise sends the server's remaining bytes, as long as the
  // client accepts some every second.
  void finish();
  // Thread-safe. No effect once the handshake is done.
  void end_handshake();

 private:
  using ErrorCode = boost::system::error_code;
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        Connection::Executor>;
  using Step = void (TlsRelay::*)(ErrorCode error, size_t bytes);

  // Keeps the relay alive during an asynchronous operation. If an exception loses the operation,
  // closes the connection.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<TlsRelay> relay) : relay_(std::move(relay)) {}
    Turn(Turn&&) = default;
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (relay_) relay_->shut_down_sockets();
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
  void connect_socket_pair();
  // Client to server.
  void read_client();
  void on_client_bytes(ErrorCode error, size_t bytes);
  void client_finished();
  void on_client_refused(ErrorCode error, size_t);
  void on_server_written(ErrorCode error, size_t);
  // Server to client.
  void read_server();
  void on_server_bytes(ErrorCode error, size_t bytes);
  void on_client_written(ErrorCode error, size_t);
  // Shutdown, after the server has closed its end.
  void on_shutdown_sent(ErrorCode error, size_t);
  void on_bytes_after_close(ErrorCode error, size_t);
  void close() noexcept;
  void shut_down_sockets() noexcept;

  std::shared_ptr<HttpCore> core_;
  std::shared_ptr<TlsContexts::Context> context_;
  Ready ready_;
  const PeerName peer_;
  boost::asio::ssl::stream<Socket> client_;
  Socket server_;
  Timer timer_;        // for the handshake and the shutdown
  Timer write_timer_;  // for a client that does not read
  std::atomic<bool> handshaking_{true};
  bool finishing_ = false;
  bool ending_ = false;  // the server has closed its end
  bool closed_ = false;
  std::array<char, size_t{16} << 10> up_, down_;
};

}  // namespace valora::server
