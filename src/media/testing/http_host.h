// A loopback HTTP server with fixed responses, for tests of fetching.
#pragma once

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace valora::media::testing {

class HttpHost {
 public:
  // answers: from path to whole response. Other paths get 404.
  explicit HttpHost(std::map<std::string, std::string> answers)
      : answers_(std::move(answers)), socket_(listen_on_loopback()), silent_(listen_on_loopback()) {
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpHost() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
    ::close(silent_);
  }
  HttpHost(const HttpHost&) = delete;
  HttpHost& operator=(const HttpHost&) = delete;

  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port(socket_)) + path;
  }
  // Accepts connections and never answers.
  std::string silent_url() const {
    return "http://127.0.0.1:" + std::to_string(port(silent_)) + "/";
  }
  int requests() const { return requests_; }

 private:
  static int listen_on_loopback() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd, 16) != 0)
      std::abort();
    return fd;
  }

  static int port(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
  }

  void serve() {
    for (int fd; (fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(fd)) {
      std::string request;
      char buffer[4096];
      for (ssize_t got; request.find("\r\n\r\n") == std::string::npos &&
                        (got = ::read(fd, buffer, sizeof buffer)) > 0;)
        request.append(buffer, size_t(got));
      ++requests_;
      const size_t begin = request.find(' ') + 1;
      const auto it = answers_.find(request.substr(begin, request.find(' ', begin) - begin));
      const std::string answer = it != answers_.end()
                                     ? it->second
                                     : "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
      for (size_t sent = 0; sent < answer.size();) {
        const ssize_t now = ::send(fd, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (now <= 0) break;
        sent += size_t(now);
      }
    }
  }

  const std::map<std::string, std::string> answers_;
  const int socket_;
  const int silent_;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

}  // namespace valora::media::testing
