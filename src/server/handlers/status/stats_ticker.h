// Sends an event per second to the clients that stream /v1/stats.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
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

  // Starts the stream with one event and returns its id. It ends when its client disconnects, when
  // the server drains, in stop(), or when another client needs its place: if there are
  // kMostReaders, the newest stream of the client that has most of them ends for one that has
  // fewer. nullopt: the client must not take a place.
  std::optional<uint64_t> add(std::shared_ptr<Exchange> exchange, const ServedUser* user,
                              std::string client);
  void remove(uint64_t reader);
  // Ends all streams and accepts no more readers.
  void stop();

 private:
  struct Reader {
    std::shared_ptr<Exchange> exchange;
    const ServedUser* user = nullptr;
    std::string client;
    uint64_t id = 0;
    uint64_t last_step = 0;
  };
  using Readers = std::list<Reader>;

  // One event shared by all readers that have the same rights and know the same steps.
  struct Tick {
    const ServedUser* user = nullptr;
    uint64_t before = 0, last_step = 0;
    std::string text;  // empty: not built yet
  };

  void run();
  void send(Reader& reader, Tick& tick) const;
  // The reader that must leave for one more of this client; end(): none may.
  Readers::iterator displaced_by(const std::string& client);

  const Service& service_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Readers readers_;  // newest last
  uint64_t next_id_ = 0;
  std::thread thread_;  // started for the first reader
  bool stopped_ = false;
};

}  // namespace valora::server
