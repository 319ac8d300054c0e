// State that the connections of one HttpServer share. Thread-safe.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "server/http/http.h"
#include "server/server.h"

namespace valora::server {

class Connection;

class HttpCore {
 public:
  HttpCore(HttpLimits limits, std::shared_ptr<HttpHandler> handler, int io_threads,
           int handler_threads)
      : limits(limits), handler(std::move(handler)), io(io_threads), handlers(handler_threads) {}

  const HttpLimits limits;
  const std::shared_ptr<HttpHandler> handler;
  boost::asio::io_context io;
  boost::asio::thread_pool handlers;
  std::atomic<bool> close_after_responses{false};
  std::atomic<bool> stopped{false};  // the threads have ended: posted work would never run

  bool full() const;
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  std::vector<std::shared_ptr<Connection>> connections() const;

  void exchange_began();
  void exchange_ended();
  size_t active_exchanges() const;
  void when_idle(std::function<void()> idle);

  // Counts the body bytes of all requests. False: the limit would be exceeded, and nothing is
  // counted.
  bool take_body_bytes(size_t bytes);
  void give_body_bytes(size_t bytes) { body_bytes_ -= bytes; }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  size_t active_exchanges_ = 0;
  std::function<void()> idle_;
  std::atomic<size_t> body_bytes_{0};
};

}  // namespace valora::server
