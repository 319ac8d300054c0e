// State that the connections of one HttpServer share. Thread-safe.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/http/http.h"
#include "server/server.h"

namespace valora::server {

class Connection;

// Bytes that connections hold. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(size_t limit) : limit_(limit) {}
  // False: the limit would be exceeded, and nothing is counted.
  bool take(size_t bytes);
  void give_back(size_t bytes) { held_ -= bytes; }

 private:
  const size_t limit_;
  std::atomic<size_t> held_{0};
};

// Bytes by client. Thread-safe.
class ClientBudgets {
 public:
  explicit ClientBudgets(size_t limit) : limit_(limit) {}
  // False: the client's limit would be exceeded, and nothing is counted.
  bool take(const std::string& client, size_t bytes);
  void give_back(const std::string& client, size_t bytes);

 private:
  const size_t limit_;
  std::mutex mutex_;
  std::unordered_map<std::string, size_t> held_;
};

class HttpCore {
 public:
  HttpCore(HttpLimits limits, std::shared_ptr<HttpHandler> handler, int io_threads,
           int handler_threads)
      : limits(limits),
        handler(std::move(handler)),
        bodies(limits.max_total_body_bytes),
        unfinished_bodies(limits.max_unfinished_body_bytes),
        outbound(limits.max_total_outbound_bytes),
        io(io_threads),
        handlers(handler_threads) {}

  const HttpLimits limits;
  const std::shared_ptr<HttpHandler> handler;
  ByteBudget bodies;  // of all requests
  ClientBudgets unfinished_bodies;
  ByteBudget outbound;  // of all answers that are not sent yet
  boost::asio::io_context io;
  boost::asio::thread_pool handlers;
  std::atomic<bool> close_after_responses{false};
  std::atomic<bool> stopped{false};  // the threads have ended: posted work would never run

  size_t connection_count() const;
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  std::vector<std::shared_ptr<Connection>> connections() const;

  void exchange_began();
  void exchange_ended();
  size_t active_exchanges() const;
  void when_idle(std::function<void()> idle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  size_t active_exchanges_ = 0;
  std::function<void()> idle_;
};

}  // namespace valora::server
