// The bytes of one client: a TCP or Unix domain socket, plain or under TLS.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace valora::server {

// An AsyncReadStream and AsyncWriteStream, used on its socket's strand. A read may be cancelled
// through its handler's cancellation slot and loses no byte. A write must not: a TLS record of
// which a part is missing ends the connection.
class ClientStream {
 public:
  using Executor = boost::asio::strand<boost::asio::io_context::executor_type>;
  using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, Executor>;
  using executor_type = Executor;

  explicit ClientStream(Socket socket) : plain_(std::move(socket)) {}
  // Under TLS: async_handshake() comes first.
  ClientStream(Socket socket, boost::asio::ssl::context& context)
      : tls_(std::make_unique<Tls>(std::move(socket), context)) {}

  // For everything but bytes.
  Socket& socket() { return tls_ ? tls_->next_layer() : *plain_; }
  executor_type get_executor() { return socket().get_executor(); }

  template <typename Handler>
  void async_handshake(Handler&& handler) {
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_ && !finished_)
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    else
      socket().async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_)
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    else
      socket().async_write_some(buffers, std::forward<Handler>(handler));
  }

  // Tells the client that nothing more is sent, then calls done(); without TLS at once. Under TLS
  // this reads up to the client's own close. What is read afterwards is only to be discarded: it is
  // not decoded.
  template <typename Done>
  void async_finish(Done done) {
    finishing_ = true;
    if (!tls_) return finished(done);
    tls_->async_shutdown([this, done = std::move(done)](const auto&) mutable { finished(done); });
  }
  bool has_finished() const { return finished_; }

  // Closes at once. Under TLS the client is told so, unless a write is under way or the socket's
  // buffer is full.
  void close(bool writing) noexcept;

 private:
  using Tls = boost::asio::ssl::stream<Socket>;

  template <typename Done>
  void finished(Done& done) {
    finished_ = true;
    boost::system::error_code ignored;
    socket().shutdown(Socket::shutdown_send, ignored);
    done();
  }

  std::optional<Socket> plain_;  // either this one
  std::unique_ptr<Tls> tls_;     // or this one
  bool finishing_ = false, finished_ = false;
};

// How Beast ends a WebSocket; beast_close_socket() is for timers, which it does not have here.
inline void beast_close_socket(ClientStream& stream) { stream.close(true); }
inline void teardown(boost::beast::role_type, ClientStream& stream, boost::system::error_code&) {
  stream.close(true);
}
template <typename Handler>
void async_teardown(boost::beast::role_type, ClientStream& stream, Handler&& handler) {
  stream.async_finish(
      [executor = stream.get_executor(), handler = std::forward<Handler>(handler)]() mutable {
        boost::asio::post(executor, boost::beast::bind_front_handler(std::move(handler),
                                                                     boost::system::error_code()));
      });
}

}  // namespace valora::server
