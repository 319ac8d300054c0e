// Accepts TLS connections.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "server/tls/tls_contexts.h"
#include "server/tls/tls_relay.h"

namespace valora::server {

class TlsAcceptor {
 public:
  // Descriptors per connection: the client's socket and the socket pair behind it.
  static constexpr size_t kDescriptors = 3;
  static constexpr size_t kMaxHandshakes = 256;

  TlsAcceptor(TlsContexts contexts, std::shared_ptr<HttpCore> core, TlsRelay::Ready ready)
      : contexts_(std::move(contexts)), core_(std::move(core)), ready_(std::move(ready)) {}

  // Begins a handshake. If there are too many, drops the oldest unfinished one. Call from one
  // thread at a time.
  void take(TlsRelay::Socket client, PeerName peer);
  // Thread-safe. Call when the server has closed its connections, or is about to.
  void finish();

 private:
  void make_room();

  TlsContexts contexts_;
  std::shared_ptr<HttpCore> core_;
  TlsRelay::Ready ready_;
  std::mutex mutex_;
  std::list<std::weak_ptr<TlsRelay>> relays_;  // oldest first
};

}  // namespace valora::server
