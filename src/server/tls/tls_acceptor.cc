#include "server/tls/tls_acceptor.h"

namespace valora::server {

void TlsAcceptor::take(ClientStream::Socket client, const PeerName& peer) {
  add(ClientStream(std::move(client), *contexts_.current()), peer)->start(ready_);
}

void TlsAcceptor::refuse(ClientStream client, const PeerName& peer, std::string answer) {
  add(std::move(client), peer)->refuse(std::move(answer));
}

std::shared_ptr<TlsHandshake> TlsAcceptor::add(ClientStream client, const PeerName& peer) {
  auto added = std::make_shared<TlsHandshake>(std::move(client), peer, core_);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<TlsHandshake> longest;
  size_t open = 0;
  for (auto it = handshakes_.begin(); it != handshakes_.end();) {
    const auto handshake = it->lock();
    if (handshake && handshake->is_open()) {
      if (!longest) longest = handshake;
      ++open;
    }
    it = handshake ? std::next(it) : handshakes_.erase(it);
  }
  if (open >= kMaxHandshakes) longest->end();
  handshakes_.push_back(added);
  return added;
}

void TlsAcceptor::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : handshakes_)
    if (const auto handshake = weak.lock()) handshake->end();
}

}  // namespace valora::server
