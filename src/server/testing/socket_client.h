// A blocking HTTP client on a plain socket that can send arbitrary bytes. A read fails the test
// after a minute.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

namespace valora::server::testing {

struct SocketResponse {
  int status = 0;
  std::string head;
  std::string body;
  bool has(std::string_view text) const { return head.find(text) != head.npos; }
};

class SocketClient {
 public:
  explicit SocketClient(uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) disconnect();
  }
  explicit SocketClient(const std::string& unix_path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    unix_path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) disconnect();
  }
  virtual ~SocketClient() { disconnect(); }
  SocketClient(const SocketClient&) = delete;
  SocketClient& operator=(const SocketClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  void disconnect() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  void end_sending() const { ::shutdown(fd_, SHUT_WR); }

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = write_some(bytes);
      if (sent <= 0) return;  // the server may have closed; its response can still be read
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  static std::string post_text(std::string_view path, std::string_view body,
                               std::string_view headers = {}) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + std::string(headers) +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
  }
  SocketResponse post(std::string_view path, std::string_view body, std::string_view headers = {}) {
    send(post_text(path, body, headers));
    return read_response();
  }
  SocketResponse get(std::string_view path, std::string_view headers = {}) {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(headers) + "\r\n");
    return read_response();
  }

  // True if bytes, or the end of the connection, arrive within this time.
  bool readable(int milliseconds) const {
    pollfd waiting{fd_, POLLIN, 0};
    return ::poll(&waiting, 1, milliseconds) == 1;
  }

  // Reads until `text` is received and returns the bytes up to and including it. Empty if the
  // connection closes first.
  std::string read_until(std::string_view text) {
    for (;;) {
      const size_t at = buffer_.find(text);
      if (at != buffer_.npos) return take(at + text.size());
      if (!read_more()) return {};
    }
  }

  SocketResponse read_response(bool has_body = true) {
    SocketResponse response;
    response.head = read_until("\r\n\r\n");
    if (response.head.size() > 12) response.status = std::stoi(response.head.substr(9, 3));
    const size_t at = response.head.find("Content-Length: ");
    if (!has_body || at == response.head.npos) return response;
    const size_t length = std::stoul(response.head.substr(at + 16));
    while (buffer_.size() < length && read_more()) {
    }
    response.body = take(std::min(length, buffer_.size()));
    return response;
  }

  // Reads until the connection closes.
  std::string read_all() {
    while (read_more()) {
    }
    return take(buffer_.size());
  }

 protected:
  int fd() const { return fd_; }

 private:
  virtual ssize_t write_some(std::string_view bytes) const {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  virtual ssize_t read_some(char* bytes, size_t size) { return ::recv(fd_, bytes, size, 0); }
  // True if bytes have been read from the socket but not yet returned.
  virtual bool decoded() const { return false; }

  std::string take(size_t bytes) {
    std::string out = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return out;
  }

  bool read_more() {
    constexpr int kPatienceMs = 60'000;
    if (!decoded() && !readable(kPatienceMs)) {
      ADD_FAILURE() << "the server sent nothing for a minute";
      return false;
    }
    char bytes[16384];
    const ssize_t received = read_some(bytes, sizeof bytes);
    if (received <= 0) return false;
    buffer_.append(bytes, static_cast<size_t>(received));
    return true;
  }

  int fd_;
  std::string buffer_;
};

}  // namespace valora::server::testing
