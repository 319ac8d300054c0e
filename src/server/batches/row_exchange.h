// An Exchange without a socket, over which a row of a batch asks the server's own handlers.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "server/http/http.h"

namespace valora::server {

// A thread that runs the work of all rows, in order.
class RowThread {
 public:
  RowThread();
  ~RowThread();  // drops the work that waits
  RowThread(const RowThread&) = delete;
  RowThread& operator=(const RowThread&) = delete;

  // The queue outlives the thread: events of the engine may come later, and are dropped.
  class Queue {
   public:
    void post(std::function<void()> work);

   private:
    friend class RowThread;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> work_;
    bool closed_ = false;
  };
  const std::shared_ptr<Queue>& queue() const { return queue_; }

 private:
  void run();

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::thread thread_;
};

class RowExchange final : public Exchange, public std::enable_shared_from_this<RowExchange> {
 public:
  // Called once: with the answer, or nullopt if the row was left or the server ends.
  using Done = std::function<void(std::optional<HttpResponse>)>;

  RowExchange(std::shared_ptr<RowThread::Queue> queue, Done done)
      : queue_(std::move(queue)), done_(std::move(done)) {}
  ~RowExchange() override { end(std::nullopt); }

  void post(std::function<void()> work) override { queue_->post(std::move(work)); }
  void respond(HttpResponse response) override { end(std::move(response)); }
  void begin_stream(HttpResponse head) override;
  void write(std::string) override {}
  void end_stream() override {}
  void release_body() override {}
  void abort() override { end(std::nullopt); }
  void on_disconnect(std::function<void()> left) override;

  // Ends the row without an answer, and its request in the engine.
  void leave();

 private:
  void end(std::optional<HttpResponse> response);

  const std::shared_ptr<RowThread::Queue> queue_;
  std::mutex mutex_;
  Done done_;                   // null: it has ended
  std::function<void()> left_;  // holds the answer, which holds this exchange, until the end
  bool leaving_ = false;
};

}  // namespace valora::server
