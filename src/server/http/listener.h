// The socket on which a server listens: TCP or a Unix domain socket.
#pragma once

#include <sys/types.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace valora::server {

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

// Binds `acceptor` to the first of the host's addresses that can be bound, and listens. Returns the
// port. Errors: kInvalidArgument if the host can't be resolved, kUnavailable if no address can be
// bound.
Result<uint16_t> listen_on_port(Acceptor& acceptor, const std::string& host, uint16_t port);

// A Unix domain socket in the file system. The destructor removes the file unless another one has
// taken its name.
class SocketFile {
 public:
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  SocketFile(SocketFile&& other) noexcept;
  SocketFile& operator=(SocketFile&&) = delete;
  ~SocketFile();

  // Binds `acceptor` to the path, gives the file this mode and listens. Replaces a socket that
  // nobody listens on. Errors: kInvalidArgument if the path is too long or names anything other
  // than a socket, kUnavailable if it is in use or can't be bound.
  static Result<SocketFile> listen(Acceptor& acceptor, const std::string& path, mode_t mode);

 private:
  SocketFile(std::string path, dev_t device, ino_t inode)
      : path_(std::move(path)), device_(device), inode_(inode) {}

  std::string path_;
  dev_t device_;
  ino_t inode_;
};

// A connection's peer: its address, without and with the port. Both are "unix" for a Unix domain
// socket, and "unknown" if the connection is already lost.
struct PeerName {
  std::string address, with_port;
};
PeerName name_of_peer(const boost::asio::generic::stream_protocol::endpoint& peer);

}  // namespace valora::server
