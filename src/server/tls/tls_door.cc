#include "server/tls/tls_door.h"

namespace valora::server {

void TlsDoor::take(TlsRelay::Socket client, PeerName peer) {
  auto relay = std::make_shared<TlsRelay>(std::move(client), std::move(peer), contexts_.current(),
                                          core_, ready_);
  {
    const std::lock_guard lock(mutex_);
    make_room();
    relays_.push_back(relay);
  }
  relay->start();
}

void TlsDoor::make_room() {
  std::shared_ptr<TlsRelay> longest;
  size_t handshakes = 0;
  for (auto it = relays_.begin(); it != relays_.end();) {
    const auto relay = it->lock();
    if (relay && relay->shaking_hands()) {
      if (!longest) longest = relay;
      ++handshakes;
    }
    it = relay ? std::next(it) : relays_.erase(it);
  }
  if (handshakes >= kMostHandshakes) longest->end_handshake();
}

void TlsDoor::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : relays_)
    if (const auto relay = weak.lock()) relay->finish();
}

}  // namespace valora::server
