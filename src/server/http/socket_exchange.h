// An Exchange over a Connection. Every call is dispatched to the connection's strand.
#pragma once

#include <memory>

#include "server/http/http.h"

namespace valora::server {

class Connection;

class SocketExchange final : public Exchange {
 public:
  SocketExchange(std::shared_ptr<Connection> connection, uint64_t serial);
  ~SocketExchange() override;

  void post(std::function<void()> work) override;
  void respond(HttpResponse response) override;
  void begin_stream(HttpResponse head) override;
  void write(std::string bytes) override;
  void end_stream() override;
  void release_body() override;
  void abort() override;
  void on_disconnect(std::function<void()> left) override;

 private:
  template <typename Work>
  void dispatch(Work work) noexcept;

  std::shared_ptr<Connection> connection_;
  uint64_t serial_;
};

}  // namespace valora::server
