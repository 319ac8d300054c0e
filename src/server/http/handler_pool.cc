#include "server/http/handler_pool.h"

#include <utility>

namespace valora::server {
namespace {

constexpr size_t kShortBody = size_t{64} << 10;  // a millisecond or two of parsing

}  // namespace

HandlerPool::HandlerPool(int threads)
    : short_(std::make_unique<FairPool>(threads)), long_(std::make_unique<FairPool>(threads)) {}

HandlerPool::~HandlerPool() { finish(); }

void HandlerPool::post(const std::string& client, size_t body_bytes, std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  FairPool* const pool = (body_bytes <= kShortBody ? short_ : long_).get();
  if (pool) pool->post(client, 0, std::move(job));
}

void HandlerPool::finish() {
  std::unique_ptr<FairPool> pools[2];
  {
    const std::lock_guard lock(mutex_);
    pools[0] = std::move(short_);
    pools[1] = std::move(long_);
  }
}

}  // namespace valora::server
