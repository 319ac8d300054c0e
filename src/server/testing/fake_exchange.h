// An Exchange without a socket. Records the answer and runs posted work on the test's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "server/http/http.h"

namespace valora::server::testing {

class FakeExchange final : public Exchange {
 public:
  void post(std::function<void()> work) override {
    std::lock_guard lock(mutex_);
    if (exchange_closed_) return;
    work_.push_back(std::move(work));
    changed_.notify_all();
  }
  void respond(HttpResponse answer) override {
    std::lock_guard lock(mutex_);
    response = std::move(answer);
    ended_ = true;
    changed_.notify_all();
  }
  void begin_stream(HttpResponse head) override {
    response = std::move(head);
    streaming = true;
  }
  void write(std::string bytes) override {
    const std::lock_guard lock(mutex_);
    stream += bytes;
  }
  void end_stream() override { ended_ = true; }
  void release_body() override { body_released = true; }
  void abort() override { aborted = ended_ = true; }
  void on_disconnect(std::function<void()> left) override { left_ = std::move(left); }

  // Runs posted work until the answer has ended.
  void run() {
    run_until([this] { return ended_; });
    close_exchange();
  }
  // Runs posted work until the first bytes of the stream are written.
  void run_until_streaming() {
    run_until([this] { return !stream.empty(); });
  }
  void leave() {
    // The answer may begin before its handler registers the callback.
    run_until([this] { return left_ != nullptr; });
    std::exchange(left_, nullptr)();
    close_exchange();
  }

  Json json() const { return Json::parse(response.body); }
  // The JSON of each event, without its name and the final [DONE].
  std::vector<Json> events() const {
    std::vector<Json> out;
    const std::lock_guard lock(mutex_);
    for (size_t at = 0; at < stream.size();) {
      const size_t end = stream.find("\n\n", at);
      const std::string event = stream.substr(at, end - at);
      at = end + 2;
      if (event != "data: [DONE]")
        out.push_back(Json::parse(event.substr(event.find("data: ") + 6)));
    }
    return out;
  }

  HttpResponse response;
  bool streaming = false;
  bool aborted = false;
  bool body_released = false;
  std::string stream;

 private:
  // Breaks the reference cycle: posted work holds the answer, which holds this exchange.
  void close_exchange() {
    std::deque<std::function<void()>> dropped;
    left_ = nullptr;
    std::lock_guard lock(mutex_);
    exchange_closed_ = true;
    dropped.swap(work_);
  }

  template <typename Condition>
  void run_until(Condition condition) {
    std::unique_lock lock(mutex_);
    while (!condition()) {
      if (!changed_.wait_for(lock, std::chrono::minutes(1),
                             [&] { return condition() || !work_.empty(); }))
        throw std::runtime_error("FakeExchange: no answer within a minute");
      if (condition()) return;
      auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::function<void()> left_;
  bool ended_ = false;
  bool exchange_closed_ = false;
};

}  // namespace valora::server::testing
