#include "server/tls/tls_contexts.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <string>

namespace valora::server {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::chrono::seconds kLookAgain{1};

const std::string& key_file(const TlsOptions& options) {
  return options.key_file.empty() ? options.certificate_file : options.key_file;
}

Error unusable(const char* option, const std::string& file, const error_code& error) {
  return invalid(fmt::format("--{} {}: {}", option, file, error.message()), option);
}

Status require_clients(const TlsOptions& options, ssl::context& context) {
  using Wanted = TlsOptions::ClientCertificates;
  if (options.client_certificates == Wanted::kIgnored) return {};
  if (options.client_ca_file.empty())
    return invalid("--ssl-cert-reqs needs --ssl-ca-certs, the authorities of the clients",
                   "ssl-cert-reqs");
  error_code error;
  if (context.load_verify_file(options.client_ca_file, error))
    return unusable("ssl-ca-certs", options.client_ca_file, error);
  const bool required = options.client_certificates == Wanted::kRequired;
  context.set_verify_mode(
      ssl::verify_peer | (required ? ssl::verify_fail_if_no_peer_cert : ssl::verify_none), error);
  // Without an id context OpenSSL refuses to resume sessions of clients with certificates.
  constexpr unsigned char kName[] = "valora";
  SSL_CTX_set_session_id_context(context.native_handle(), kName, sizeof kName - 1);
  return {};
}

Result<std::shared_ptr<ssl::context>> read(const TlsOptions& options) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  error_code error;
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 |
                           ssl::context::no_sslv3 | ssl::context::no_tlsv1 |
                           ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION,
                       error);
  // Without this, OpenSSL would ask for an encrypted key's password on the terminal.
  context->set_password_callback(
      [](size_t, ssl::context::password_purpose) { return std::string(); }, error);
  if (context->use_certificate_chain_file(options.certificate_file, error))
    return unusable("ssl-certfile", options.certificate_file, error);
  if (context->use_private_key_file(key_file(options), ssl::context::pem, error))
    return unusable("ssl-keyfile", key_file(options), error);
  VALORA_CHECK(require_clients(options, *context));
  return context;
}

}  // namespace

TlsContexts::Stamps TlsContexts::stamps_of(const TlsOptions& options) {
  Stamps stamps;
  for (const std::string& file :
       {options.certificate_file, key_file(options), options.client_ca_file}) {
    std::error_code missing;
    stamps.push_back(std::filesystem::last_write_time(file, missing));
  }
  return stamps;
}

Result<TlsContexts> TlsContexts::load(TlsOptions options) {
  Stamps stamps = stamps_of(options);
  VALORA_TRY(context, read(options));
  return TlsContexts(std::move(options), std::move(stamps), std::move(context));
}

std::shared_ptr<TlsContexts::Context> TlsContexts::current() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kLookAgain) return context_;
  looked_ = now;
  Stamps stamps = stamps_of(options_);
  if (stamps == stamps_) return context_;
  if (auto renewed = read(options_); renewed.ok()) {
    spdlog::info("the TLS certificate was reloaded");
    context_ = std::move(*renewed);
    stamps_ = std::move(stamps);
  } else if (stamps != failed_stamps_) {
    spdlog::warn("the TLS certificate could not be reloaded; the previous one stays in use: {}",
                 renewed.error().message);
    failed_stamps_ = std::move(stamps);
  }
  return context_;
}

}  // namespace valora::server
