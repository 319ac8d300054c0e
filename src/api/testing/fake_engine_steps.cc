// The FakeEngine's engine thread, which runs one step after another.
#include <utility>

#include "api/testing/fake_engine.h"

namespace valora::testing {
namespace {

float prompt_bytes(const Prompt& prompt) {
  size_t bytes = 1;
  if (const auto* chat = std::get_if<ChatPrompt>(&prompt))
    for (const ChatMessage& message : chat->messages)
      for (const ContentPart& part : message.parts)
        if (const auto* text = std::get_if<std::string>(&part)) bytes += text->size();
  return static_cast<float>(bytes);
}

}  // namespace

bool FakeEngine::hangs(const Open& open) const {
  return !released_ && open.next >= open.reply.hangs_after;
}

std::vector<RequestHandle> FakeEngine::next_step() const {
  std::vector<RequestHandle> handles;
  if (const auto& newest = options_.newest_first) {
    if (!open_.empty() && (open_.size() >= newest->patience || handles_ == newest->total))
      handles.push_back(open_.rbegin()->first);
    return handles;
  }
  for (const auto& [handle, open] : open_)
    if (!held_ && !hangs(*open)) handles.push_back(handle);
  return handles;
}

void FakeEngine::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (!leaving_.empty()) {
      auto sink = std::move(leaving_.back());
      leaving_.pop_back();
      tell(lock, std::move(sink), [](ResponseSink& s) { s.on_output({.text = "too late"}); });
    } else if (ending_) {
      return;
    } else if (draining_ && open_.empty() && drained_) {
      const auto drained = std::exchange(drained_, nullptr);
      lock.unlock();
      drained();
      lock.lock();
    } else if (const auto handles = next_step(); !handles.empty()) {
      run_step(handles, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void FakeEngine::run_step(const std::vector<RequestHandle>& handles,
                          std::unique_lock<std::mutex>& lock) {
  for (const RequestHandle handle : handles) advance(handle, lock);
  ++steps_;
  lock.unlock();
  {
    const std::lock_guard observer_lock(observer_mutex_);
    const int count = static_cast<int>(handles.size());
    if (observer_) observer_->on_step({.tokens = count, .sequences = count, .seconds = 0.001});
  }
  lock.lock();
}

// Requests that end are closed before their sinks are called.
void FakeEngine::advance(RequestHandle handle, std::unique_lock<std::mutex>& lock) {
  const auto found = open_.find(handle);
  if (found == open_.end()) return;
  std::shared_ptr<Open> open = found->second;
  std::shared_ptr<ResponseSink> sink = open->sink;
  const Reply& reply = open->reply;
  const bool ends = !reply.endless && (reply.error ? open->next >= reply.chunks.size()
                                                   : open->next + 1 >= reply.chunks.size());
  if (ends) {
    open->sink.reset();
    open_.erase(found);
  }
  tell(lock, std::move(sink), [&](ResponseSink& s) { say_next(*open, s); });
  changed_.notify_all();
}

// Releases the sink after its last call.
template <typename Body>
void FakeEngine::tell(std::unique_lock<std::mutex>& lock, std::shared_ptr<ResponseSink> sink,
                      Body body) {
  ++busy_;
  lock.unlock();
  std::this_thread::yield();
  body(*sink);
  lock.lock();
  --busy_;
  lock.unlock();
  sink.reset();
  lock.lock();
}

bool FakeEngine::say_next(Open& open, ResponseSink& sink) {
  const Reply& reply = open.reply;
  const Usage& usage = reply.info.usage;
  const int n = open.request.sampling.n;
  if (!std::exchange(open.started, true)) {
    sink.on_start({usage.prompt_tokens, 0, usage.cached_tokens},
                  std::make_shared<const std::vector<int32_t>>(reply.info.prompt_token_ids));
    if (reply.classification && !reply.error) sink.on_classification(*reply.classification);
  }
  if (open.next < reply.chunks.size()) {
    OutputChunk chunk = reply.chunks[open.next];
    // As if longer prompts were likelier to get the first of the tokens.
    for (const int32_t id : open.request.sampling.logprob_token_ids)
      for (TokenOutput& token : chunk.tokens)
        token.top.push_back(
            {.id = id,
             .logprob = token.top.empty() ? -1.0f / prompt_bytes(open.request.prompt) : -1.0f});
    for (chunk.index = 0; chunk.index < n; ++chunk.index) sink.on_output(chunk);
    if (reply.endless && open.next + 1 == reply.chunks.size()) return false;
    if (++open.next < reply.chunks.size() || reply.error) return false;
  } else if (reply.error) {
    sink.on_error(*reply.error);
    return true;
  }
  if (reply.embedding) sink.on_embedding(*reply.embedding);
  FinalInfo info = reply.info;
  for (const OutputChunk& chunk : reply.chunks) {
    info.usage.completion_tokens += n * static_cast<int>(chunk.tokens.size());
    info.usage.thought_tokens += n * chunk.thought_tokens;
  }
  sink.on_done(info);
  return true;
}

}  // namespace valora::testing
