// An Exchange without a socket, over which the server asks its own handlers: for the rows of a
// batch, and for the skills of one request. Answers are whole.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/http/http.h"

namespace valora::server {

class InnerExchange final : public Exchange {
 public:
  // Runs work as Exchange::post() does.
  using Post = std::function<void(std::function<void()>)>;
  // Called once: with the answer, or nullopt if the request was left or the server ends.
  using Done = std::function<void(std::optional<HttpResponse>)>;

  InnerExchange(Post post, Done done) : post_(std::move(post)), done_(std::move(done)) {}
  ~InnerExchange() override { end(std::nullopt); }

  void post(std::function<void()> work) override { post_(std::move(work)); }
  void respond(HttpResponse response) override { end(std::move(response)); }
  void begin_stream(HttpResponse head) override;
  void write(std::string) override {}
  void end_stream() override {}
  void release_body() override {}
  void abort() override { end(std::nullopt); }
  void on_disconnect(std::function<void()> left) override;

  // Ends the request without an answer, and its request in the engine. client_left(): the same,
  // called on the executor.
  void leave();
  void client_left();

 private:
  std::function<void()> begin_leaving();
  void end(std::optional<HttpResponse> response);

  const Post post_;
  std::mutex mutex_;
  Done done_;                   // null: it has ended
  std::function<void()> left_;  // holds the answer, which holds this exchange, until the end
  bool leaving_ = false;
};

}  // namespace valora::server
