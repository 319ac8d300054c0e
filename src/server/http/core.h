// State that the connections of one HttpServer share. Thread-safe.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/http/handler_pool.h"
#include "server/http/http.h"
#include "server/http/rescue.h"
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

// Strands for connections, all made at start: asio does not survive a lack of memory while it makes
// one. Thread-safe.
class StrandPool {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  StrandPool(boost::asio::io_context& io, size_t count);
  // Makes one if all are in use.
  Strand take();
  void give_back(const Strand& strand) noexcept;

 private:
  boost::asio::io_context& io_;
  std::mutex mutex_;
  std::vector<Strand> free_;  // its capacity never changes
};

class HttpCore {
 public:
  HttpCore(HttpLimits limits, std::shared_ptr<HttpHandler> handler, int io_threads,
           int handler_threads, size_t strands_per_connection)
      : limits(limits),
        handler(std::move(handler)),
        bodies(limits.max_total_body_bytes),
        unfinished_bodies(limits.max_unfinished_body_bytes),
        outbound(limits.max_total_outbound_bytes),
        io(io_threads),
        strands(io,
                strands_per_connection * (limits.max_connections + limits.status_connections + 1)),
        handlers(handler_threads) {}

  const HttpLimits limits;
  const std::shared_ptr<HttpHandler> handler;
  ByteBudget bodies;  // of all requests
  ClientBudgets unfinished_bodies;
  ByteBudget outbound;  // of all answers that are not sent yet
  Rescue rescue;
  boost::asio::io_context io;
  StrandPool strands;
  HandlerPool handlers;
  std::atomic<bool> close_after_responses{false};
  std::atomic<bool> stopped{false};  // the threads have ended: posted work would never run

  size_t connection_count() const;
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  std::vector<std::shared_ptr<Connection>> connections() const;

  // A place in the list of connections that wait for a request, longest first. `place` holds one
  // element, which moves into the list and back.
  using Places = std::list<Connection*>;
  void waits_for_request(Places& place) noexcept;
  void waits_no_more(Places& place, Places::iterator element) noexcept;
  // Closes the connection that has waited longest for a request. False: none waits.
  bool close_longest_waiting();

  void exchange_began();
  void exchange_ended();
  size_t active_exchanges() const;
  void when_idle(std::function<void()> idle);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  Places waiting_;
  size_t active_exchanges_ = 0;
  std::function<void()> idle_;
};

}  // namespace valora::server
