#include "server/tls/tls_acceptor.h"

namespace valora::server {

void TlsAcceptor::take(TlsRelay::Socket client, PeerName peer) {
  auto relay = std::make_shared<TlsRelay>(std::move(client), std::move(peer), contexts_.current(),
                                          core_, ready_);
  {
    const std::lock_guard lock(mutex_);
    make_room();
    relays_.push_back(relay);
  }
  relay->start();
}

void TlsAcceptor::make_room() {
  std::shared_ptr<TlsRelay> longest;
  size_t handshakes = 0;
  for (auto it = relays_.begin(); it != relays_.end();) {
    const auto relay = it->lock();
    if (relay && relay->is_handshaking()) {
      if (!longest) longest = relay;
      ++handshakes;
    }
    it = relay ? std::next(it) : relays_.erase(it);
  }
  if (handshakes >= kMaxHandshakes) longest->end_handshake();
}

void TlsAcceptor::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : relays_)
    if (const auto relay = weak.lock()) relay->finish();
}

}  // namespace valora::server
