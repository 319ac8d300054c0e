// Accepts TLS connections.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "server/tls/tls_contexts.h"
#include "server/tls/tls_handshake.h"

namespace valora::server {

class TlsAcceptor {
 public:
  // Clients that have no connection yet, or get none.
  static constexpr size_t kMaxHandshakes = 256;

  TlsAcceptor(TlsContexts contexts, std::shared_ptr<HttpCore> core, TlsHandshake::Ready ready)
      : contexts_(std::move(contexts)), core_(std::move(core)), ready_(std::move(ready)) {}

  // Begins a handshake. Call from one thread at a time, like refuse(). If there are too many
  // clients without a connection, both drop the one that came first.
  void take(ClientStream::Socket client, const PeerName& peer);
  // Sends this answer to a client for whom there is no connection.
  void refuse(ClientStream client, const PeerName& peer, std::string answer);
  // Thread-safe. Drops all clients without a connection.
  void finish();

 private:
  std::shared_ptr<TlsHandshake> add(ClientStream client, const PeerName& peer);

  TlsContexts contexts_;
  std::shared_ptr<HttpCore> core_;
  TlsHandshake::Ready ready_;
  std::mutex mutex_;
  std::list<std::weak_ptr<TlsHandshake>> handshakes_;  // oldest first
};

}  // namespace valora::server
