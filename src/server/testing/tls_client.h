// A SocketClient over TLS, and certificate files for its server.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "server/testing/socket_client.h"

namespace valora::server::testing {

// Writes a new key and a self-signed certificate for 127.0.0.1 to one PEM file.
void write_certificate(const std::string& path);

class TlsClient : public SocketClient {
 public:
  // Trusts the certificates in `authorities`. `own`: a file from write_certificate() to present.
  TlsClient(uint16_t port, const std::string& authorities, const std::string& own = {});

  bool secure() const { return secure_; }
  // True if the server sent close_notify, so the connection was not cut off.
  bool ended_well() const { return SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN; }
  // The serial number of the server's certificate.
  std::string serial() const;
  // Sends a TLS close_notify: the client will send nothing more.
  void send_shutdown() const { SSL_shutdown(ssl_.get()); }

 private:
  ssize_t write_some(std::string_view bytes) const override;
  ssize_t read_some(char* bytes, size_t size) override;
  bool decoded() const override { return SSL_pending(ssl_.get()) > 0; }

  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  bool secure_ = false;
};

}  // namespace valora::server::testing
