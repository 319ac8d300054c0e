// Sends an event per second to the clients that stream /v1/stats.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "server/http/http.h"

namespace valora::server {

class Service;
class ServedUser;

// Thread-safe. The thread sleeps while there are no readers.
class StatsTicker {
 public:
  static constexpr size_t kMostReaders = 64;

  // `service` must outlive this object.
  explicit StatsTicker(const Service& service) : service_(service) {}
  ~StatsTicker() { stop(); }
  StatsTicker(const StatsTicker&) = delete;
  StatsTicker& operator=(const StatsTicker&) = delete;

  // Starts the stream with one event. It ends when the client disconnects, when the server drains,
  // or in stop(). Returns false if there are kMostReaders already.
  bool add(std::shared_ptr<Exchange> exchange, const ServedUser* user);
  void remove(const Exchange* exchange);
  // Ends all streams and accepts no more readers.
  void stop();

 private:
  struct Reader {
    std::shared_ptr<Exchange> exchange;
    const ServedUser* user = nullptr;
    uint64_t last_step = 0;
  };

  // One event shared by all readers that have the same rights and know the same steps.
  struct Tick {
    const ServedUser* user = nullptr;
    uint64_t before = 0, last_step = 0;
    std::string text;  // empty: not built yet
  };

  void run();
  void send(Reader& reader, Tick& tick) const;

  const Service& service_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Reader> readers_;
  std::thread thread_;  // started for the first reader
  bool stopped_ = false;
};

}  // namespace valora::server
