#include "server/http/listener.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace valora::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Endpoint = asio::generic::stream_protocol::endpoint;
using UnixSocket = asio::local::stream_protocol;

// The endpoint as a TCP endpoint; nullopt for other address families.
std::optional<tcp::endpoint> tcp_endpoint(const Endpoint& endpoint) {
  const int family = endpoint.data()->sa_family;
  tcp::endpoint address;
  if ((family != AF_INET && family != AF_INET6) || endpoint.size() > address.capacity()) return {};
  std::memcpy(address.data(), endpoint.data(), endpoint.size());
  address.resize(endpoint.size());
  return address;
}

Error unavailable(const std::string& path, const std::string& reason) {
  return {ErrorCode::kUnavailable, fmt::format("can't listen on {}: {}", path, reason), "uds"};
}

// Removes a socket that nobody listens on. Any other file at the path is kept.
Status remove_stale(const std::string& path) {
  struct stat file{};
  if (lstat(path.c_str(), &file) != 0)
    return errno == ENOENT ? Status() : unavailable(path, std::strerror(errno));
  if (!S_ISSOCK(file.st_mode))
    return invalid(path + " is not a socket; name another path to listen on", "uds");
  asio::io_context io;
  UnixSocket::socket probe(io);
  error_code error;
  probe.connect(UnixSocket::endpoint(path), error);
  if (!error) return unavailable(path, "another program listens there");
  if (error != asio::error::connection_refused) return unavailable(path, error.message());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return unavailable(path, std::strerror(errno));
  return {};
}

}  // namespace

Result<uint16_t> listen_on_port(Acceptor& acceptor, const std::string& host, uint16_t port) {
  error_code error, ignored;
  asio::io_context io;
  const auto endpoints =
      tcp::resolver(io).resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error)
    return invalid(fmt::format("the host \"{}\" can't be resolved: {}", host, error.message()),
                   "host");
  for (const auto& entry : endpoints) {
    acceptor.close(ignored);
    if (acceptor.open(entry.endpoint().protocol(), error)) continue;
    acceptor.set_option(Acceptor::reuse_address(true), ignored);
    if (acceptor.bind(entry.endpoint(), error)) continue;
    if (acceptor.listen(asio::socket_base::max_listen_connections, error)) continue;
    const auto bound = tcp_endpoint(acceptor.local_endpoint(ignored));
    return bound ? bound->port() : port;
  }
  return Error{ErrorCode::kUnavailable,
               fmt::format("can't listen on {}:{}: {}", host, port, error.message()), "port"};
}

SocketFile::SocketFile(SocketFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

SocketFile::~SocketFile() {
  struct stat file{};
  if (path_.empty() || lstat(path_.c_str(), &file) != 0) return;
  if (file.st_dev == device_ && file.st_ino == inode_) unlink(path_.c_str());
}

Result<SocketFile> SocketFile::listen(Acceptor& acceptor, const std::string& path, mode_t mode) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path) || path[0] == '\0')
    return invalid(fmt::format("the path of a socket has 1 to {} bytes, not {}",
                               sizeof(sockaddr_un::sun_path) - 1, path.size()),
                   "uds");
  VALORA_CHECK(remove_stale(path));
  error_code error;
  if (acceptor.open(UnixSocket(), error)) return unavailable(path, error.message());
  if (acceptor.bind(UnixSocket::endpoint(path), error)) return unavailable(path, error.message());
  struct stat file{};
  if (lstat(path.c_str(), &file) != 0) return unavailable(path, std::strerror(errno));
  SocketFile bound(path, file.st_dev, file.st_ino);
  // Nobody can connect before listen(), so it is not too late to set the mode.
  if (chmod(path.c_str(), mode) != 0) return unavailable(path, std::strerror(errno));
  if (acceptor.listen(asio::socket_base::max_listen_connections, error))
    return unavailable(path, error.message());
  return bound;
}

PeerName name_of_peer(const Endpoint& peer) {
  const auto address = tcp_endpoint(peer);
  if (!address) {
    const char* const name = peer.data()->sa_family == AF_UNIX ? "unix" : "unknown";
    return {name, name};
  }
  const std::string text = address->address().to_string();
  return {text, fmt::format("{}:{}", text, address->port())};
}

}  // namespace valora::server
