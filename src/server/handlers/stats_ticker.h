// The clients that read /v1/stats as events, one each second.
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

// Thread-safe. Its thread sleeps while there are no readers.
class StatsTicker {
 public:
  static constexpr size_t kMostReaders = 64;

  // The service must outlive it.
  explicit StatsTicker(const Service& service) : service_(service) {}
  ~StatsTicker() { stop(); }
  StatsTicker(const StatsTicker&) = delete;
  StatsTicker& operator=(const StatsTicker&) = delete;

  // Begins the stream with one event. It ends when its client leaves, when the server drains, or in
  // stop(). False: there are kMostReaders already.
  bool add(std::shared_ptr<Exchange> exchange, const ServedUser* user);
  void remove(const Exchange* exchange);
  // Ends all streams and takes no more readers.
  void stop();

 private:
  struct Reader {
    std::shared_ptr<Exchange> exchange;
    const ServedUser* user = nullptr;
    uint64_t last_step = 0;
  };

  // What the readers of one tick share: those that know the same steps, with the same rights.
  struct Tick {
    const ServedUser* user = nullptr;
    uint64_t before = 0, last_step = 0;
    std::string text;  // empty: none so far
  };

  void run();
  void send(Reader& reader, Tick& tick) const;

  const Service& service_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Reader> readers_;
  std::thread thread_;  // from the first reader on
  bool stopped_ = false;
};

}  // namespace valora::server
