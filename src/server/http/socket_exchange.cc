#include "server/http/socket_exchange.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

#include "server/http/connection.h"

namespace valora::server {

SocketExchange::SocketExchange(std::shared_ptr<Connection> connection, uint64_t serial)
    : connection_(std::move(connection)), serial_(serial) {}

SocketExchange::~SocketExchange() {
  dispatch([](Connection& connection, uint64_t serial) { connection.abandon(serial); });
}

// The work holds the connection, not the exchange: abandon() runs when the exchange is destroyed.
// If memory runs out here, the connection ends, because a part of its answer is lost.
template <typename Work>
void SocketExchange::dispatch(Work work) noexcept {
  if (connection_->core_->stopped) return;
  try {
    boost::asio::dispatch(
        connection_->stream_.get_executor(),
        [pending = connection_->pending(), serial = serial_, work = std::move(work)]() mutable {
          const auto connection = pending.take();
          connection->guarded([&] { work(*connection, serial); });
        });
  } catch (const std::exception&) {
    connection_->give_up();
  }
}

void SocketExchange::post(std::function<void()> work) {
  if (connection_->core_->stopped) return;
  boost::asio::post(connection_->stream_.get_executor(),
                    [pending = connection_->pending(), work = std::move(work)]() mutable {
                      const auto connection = pending.take();
                      connection->guarded([&] { work(); });
                    });
}

void SocketExchange::respond(HttpResponse response) {
  dispatch([response = std::move(response)](Connection& connection, uint64_t serial) {
    connection.respond(serial, response);
  });
}

void SocketExchange::begin_stream(HttpResponse head) {
  dispatch([head = std::move(head)](Connection& connection, uint64_t serial) {
    connection.begin_stream(serial, head);
  });
}

void SocketExchange::write(std::string bytes) {
  dispatch([bytes = std::move(bytes)](Connection& connection, uint64_t serial) mutable {
    connection.write(serial, std::move(bytes));
  });
}

void SocketExchange::end_stream() {
  dispatch([](Connection& connection, uint64_t serial) { connection.end_stream(serial); });
}

void SocketExchange::release_body() {
  dispatch([](Connection& connection, uint64_t serial) { connection.release_body(serial); });
}

void SocketExchange::abort() {
  dispatch([](Connection& connection, uint64_t serial) { connection.abort(serial); });
}

void SocketExchange::on_disconnect(std::function<void()> left) {
  dispatch([left = std::move(left)](Connection& connection, uint64_t serial) mutable {
    connection.on_disconnect(serial, std::move(left));
  });
}

}  // namespace valora::server
