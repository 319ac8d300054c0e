#include "server/testing/tls_client.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdio>

namespace valora::server::testing {
namespace {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

void add_address(X509* certificate) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> address(
      X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, "IP:127.0.0.1"));
  X509_add_ext(certificate, address.get(), -1);
}

Certificate self_signed(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  int serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial & 0x7fffffff);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("valora test"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  add_address(certificate.get());
  X509_sign(certificate.get(), key, EVP_sha256());
  return certificate;
}

}  // namespace

void write_certificate(const std::string& path) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = self_signed(key.get());
  const std::unique_ptr<FILE, Freed<fclose>> file(fopen(path.c_str(), "w"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(PEM_write_X509(file.get(), certificate.get()));
  ASSERT_TRUE(PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr));
}

TlsClient::TlsClient(uint16_t port, const std::string& authorities, const std::string& own)
    : SocketClient(port), context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_load_verify_file(context_.get(), authorities.c_str());
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  if (!own.empty()) {
    SSL_CTX_use_certificate_file(context_.get(), own.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_.get(), own.c_str(), SSL_FILETYPE_PEM);
  }
  // A TLS record may carry no application data, in which case the read waits on; so it gets a
  // timeout.
  const timeval patience{60, 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ssl_.reset(SSL_new(context_.get()));
  X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), "127.0.0.1");
  SSL_set_fd(ssl_.get(), fd());
  secure_ = SSL_connect(ssl_.get()) == 1;
}

std::string TlsClient::serial() const {
  const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()));
  if (!certificate) return {};
  return std::to_string(ASN1_INTEGER_get(X509_get_serialNumber(certificate.get())));
}

ssize_t TlsClient::write_some(std::string_view bytes) const {
  return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
}

ssize_t TlsClient::read_some(char* bytes, size_t size) {
  return SSL_read(ssl_.get(), bytes, static_cast<int>(size));
}

}  // namespace valora::server::testing
