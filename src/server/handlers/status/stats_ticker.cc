#include "server/handlers/status/stats_ticker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_map>

#include "server/handlers/service.h"
#include "server/handlers/status/stats_json.h"
#include "server/openai/json_text.h"
#include "server/openai/sse.h"

namespace valora::server {

StatsTicker::Readers::iterator StatsTicker::displaced_by(const std::string& client) {
  std::unordered_map<std::string_view, size_t> counts;
  for (const Reader& reader : readers_) ++counts[reader.client];
  const size_t own = counts[client];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& of) { return of.second; });
  // Both clients then have at least as many as the one had.
  if (most->second <= own + 1) return readers_.end();
  const auto newest =
      std::ranges::find(readers_.rbegin(), readers_.rend(), most->first, &Reader::client);
  return std::prev(newest.base());
}

std::optional<uint64_t> StatsTicker::add(std::shared_ptr<Exchange> exchange, const ServedUser* user,
                                         std::string client) {
  Readers displaced;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  if (stopped_) return std::nullopt;
  if (readers_.size() >= kMostReaders) {
    const auto place = displaced_by(client);
    if (place == readers_.end()) return std::nullopt;
    place->exchange->end_stream();
    displaced.splice(displaced.end(), readers_, place);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  exchange->begin_stream({.content_type = "text/event-stream; charset=utf-8",
                          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
  Reader& reader = readers_.emplace_back(std::move(exchange), user, std::move(client), ++next_id_);
  Tick own;
  send(reader, own);
  changed_.notify_all();
  return reader.id;
}

void StatsTicker::remove(uint64_t reader) {
  Readers removed;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto it = std::ranges::find(readers_, reader, &Reader::id);
  if (it != readers_.end()) removed.splice(removed.begin(), readers_, it);
}

void StatsTicker::stop() {
  Readers ended;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ended.swap(readers_);
  }
  for (const Reader& reader : ended) reader.exchange->end_stream();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StatsTicker::send(Reader& reader, Tick& tick) const {
  if (tick.text.empty() || tick.user != reader.user || tick.before != reader.last_step) {
    Tick next{reader.user, reader.last_step, reader.last_step, {}};
    next.text = sse_event(to_text(stats_json(service_, reader.user, next.last_step)));
    tick = std::move(next);
  }
  reader.last_step = tick.last_step;
  reader.exchange->write(tick.text);
}

void StatsTicker::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    changed_.wait(lock, [this] { return stopped_ || !readers_.empty(); });
    changed_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; });
    if (stopped_) return;
    if (service_.draining) {
      for (const Reader& reader : readers_) reader.exchange->end_stream();
      readers_.clear();
      continue;
    }
    try {
      Tick tick;
      for (Reader& reader : readers_) send(reader, tick);
    } catch (const std::exception& e) {  // this tick is lost; the next one includes its steps
      spdlog::warn("the events of /v1/stats: {}", e.what());
    }
  }
}

}  // namespace valora::server
