// The WebSocket of a Connection.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <string>
#include <utility>

#include "server/http/connection.h"

namespace valora::server {

inline constexpr uint16_t kGoingAway = boost::beast::websocket::close_code::going_away,
                          kTryAgainLater = boost::beast::websocket::close_code::try_again_later;

struct Connection::Messages {
  Messages(ClientStream& bytes, const HttpRequest& first) : stream(bytes), head(first) {}
  bool awaited() const { return reading && !begun; }

  boost::beast::websocket::stream<ClientStream&, false> stream;  // without compression
  const HttpRequest head;                                        // of each message
  boost::beast::flat_buffer message;
  std::string answer;
  boost::asio::cancellation_signal closing;
  bool reading = false;  // between answers
  bool begun = false;    // a part of the message has come
  bool pinged = false;   // the client has not answered yet
  bool ending = false;
};

}  // namespace valora::server
