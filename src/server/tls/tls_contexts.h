// The certificate and key of a TLS server.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "server/server.h"

namespace valora::server {

// Reloads the files when they change, so that renewing a certificate needs no restart. Not
// thread-safe.
class TlsContexts {
 public:
  using Context = boost::asio::ssl::context;

  // kInvalidArgument names the option whose file is unusable, and the reason.
  static Result<TlsContexts> load(TlsOptions options);

  // The context for the next handshake. If changed files are unusable, logs that and keeps the
  // previous context.
  std::shared_ptr<Context> current();

 private:
  using Stamps = std::vector<std::filesystem::file_time_type>;

  TlsContexts(TlsOptions options, Stamps stamps, std::shared_ptr<Context> context)
      : options_(std::move(options)), stamps_(std::move(stamps)), context_(std::move(context)) {}
  static Stamps stamps_of(const TlsOptions& options);

  TlsOptions options_;
  Stamps stamps_;         // of the files in use
  Stamps failed_stamps_;  // of files already logged as unusable
  std::shared_ptr<Context> context_;
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
};

}  // namespace valora::server
