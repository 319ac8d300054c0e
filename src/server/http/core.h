// State shared by the connections of one HttpServer. Thread-safe.
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

// Budget for the bytes that connections hold. Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(size_t limit) : limit_(limit) {}
  // Returns false, and takes nothing, if the limit would be exceeded.
  bool take(size_t bytes);
  void give_back(size_t bytes) { held_ -= bytes; }

 private:
  const size_t limit_;
  std::atomic<size_t> held_{0};
};

// Byte budgets by client. Thread-safe.
class ClientBudgets {
 public:
  explicit ClientBudgets(size_t limit) : limit_(limit) {}
  // Returns false, and takes nothing, if the client's limit would be exceeded.
  bool take(const std::string& client, size_t bytes);
  void give_back(const std::string& client, size_t bytes);

 private:
  const size_t limit_;
  std::mutex mutex_;
  std::unordered_map<std::string, size_t> held_;
};

// Strands for connections, all created at start: asio does not survive running out of memory while
// creating one. Thread-safe.
class StrandPool {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  StrandPool(boost::asio::io_context& io, size_t count);
  // Creates one if all are in use.
  Strand take();
  void give_back(const Strand& strand) noexcept;

 private:
  boost::asio::io_context& io_;
  std::mutex mutex_;
  std::vector<Strand> free_;  // its capacity never changes
};

class HttpCore {
 public:
  // handshakes: the most clients without a connection (TlsAcceptor).
  HttpCore(HttpLimits limits, std::shared_ptr<HttpHandler> handler, int io_threads,
           int handler_threads, size_t handshakes)
      : limits(limits),
        handler(std::move(handler)),
        bodies(limits.max_total_body_bytes),
        unfinished_bodies(limits.max_unfinished_body_bytes),
        outbound(limits.max_total_outbound_bytes),
        io(io_threads),
        strands(io, limits.max_connections + limits.status_connections + handshakes + 1),
        handlers(handler_threads) {}

  const HttpLimits limits;
  const std::shared_ptr<HttpHandler> handler;
  ByteBudget bodies;  // of all requests
  ClientBudgets unfinished_bodies;
  ByteBudget outbound;  // of all unsent answers
  Rescue rescue;
  boost::asio::io_context io;
  StrandPool strands;
  HandlerPool handlers;
  std::atomic<bool> close_after_responses{false};
  std::atomic<bool> stopped{false};  // the threads have ended, so posted work would never run

  size_t connection_count() const;
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection* connection);
  std::vector<std::shared_ptr<Connection>> connections() const;

  // A place in the list of connections that wait for a request, longest first. `place` is a list of
  // one element, which is spliced into that list and back.
  using Places = std::list<Connection*>;
  void mark_idle(Places& place) noexcept;
  void end_waiting(Places& place, Places::iterator element) noexcept;
  // Closes the connection that has waited longest for a request. Returns false if none waits.
  bool close_longest_idle();

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
