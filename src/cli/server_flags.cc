#include "cli/server_flags.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace valora::cli {
namespace {

// Parses an octal mode as in chmod: 660.
unsigned file_mode(const std::string& text) {
  char* end = nullptr;
  const unsigned long mode = std::strtoul(text.c_str(), &end, 8);
  if (text.empty() || text.front() < '0' || text.front() > '7' || *end != '\0' || mode > 0777)
    throw std::invalid_argument("--uds-mode takes octal digits, such as 660, not " + text);
  return static_cast<unsigned>(mode);
}

// The parser splits a JSON list such as ["*"] without regard to quotes.
std::string unquoted(const std::string& text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return text;
  return text.substr(1, text.size() - 2);
}

void add_address(Command c, server::ServerOptions& s) {
  c.add_option("--host", s.host, "Address to listen on").capture_default_str();
  c.add_option("--port", s.port, "Port to listen on; 0: any free port").capture_default_str();
  c.add_option("--uds", s.uds,
               "Listen on a Unix domain socket at this path, instead of --host and --port");
  c.add_option_function<std::string>(
       "--uds-mode", [&s](const std::string& text) { s.uds_mode = file_mode(text); },
       "Mode of the socket's file, in octal digits")
      .default_str("660");
  c.add_option_function<std::string>(
      "--root-path",
      [&s](const std::string& text) {
        s.root_path = text.substr(0, text.find_last_not_of('/') + 1);
      },
      "Prefix of paths that a proxy leaves in requests, such as /models/a; paths without it work "
      "as well");
}

void add_batches(Command c, server::ServerOptions& s) {
  s.batches.in_flight = 0;  // run_serve() chooses
  c.add_option(
      "--batches-dir", s.batches_dir,
      "Take files and batches (/v1/files, /v1/batches), and keep them in this folder, made "
      "if it is not there");
  c.add_option("--batch-concurrency", s.batches.in_flight,
               "Rows of all batches that are answered at once; below --max-num-seqs, places stay "
               "free for live requests (default: three quarters of it)")
      .range(1, 100'000);
  c.add_option("--batches-per-user", s.batches.batches,
               "Highest number of batches of a user that have not ended")
      .capture_default_str();
  c.add_option("--batch-rows", s.batches.rows, "Highest number of rows of a batch")
      .human_integer()
      .capture_default_str();
  c.add_option("--batch-file-limit", s.batches.file_bytes,
               "Bytes of one file for batches, which is in memory until it is whole")
      .human_integer()
      .default_str("200M");
  c.add_option("--batch-storage", s.batches.storage_bytes,
               "Bytes of all files of a user, beyond which no more are taken")
      .human_integer()
      .default_str("8G");
}

void add_streams(Command c, server::ServerOptions& s) {
  c.add_option("--streams-dir", s.streams_dir,
               "Take live streams (/v1/streams), and keep their descriptions in this folder, made "
               "if it is not there. Their sources and webhooks obey the rules of media");
  c.add_option("--max-streams", s.streams.streams, "Highest number of streams")
      .range(1, 10'000)
      .capture_default_str();
  c.add_option("--streams-per-user", s.streams.per_user, "Highest number of streams of a user")
      .range(1, 10'000)
      .capture_default_str();
  c.add_option("--mqtt-url", s.mqtt.url,
               "Publish streams to this MQTT broker: mqtt[s]://[USER[:PASSWORD]@]HOST[:PORT]. "
               "VALORA_MQTT_PASSWORD or --mqtt-password-file keep the password out of the command "
               "line")
      .envname("VALORA_MQTT_URL");
  if (const char* password = std::getenv("VALORA_MQTT_PASSWORD")) s.mqtt.password = password;
  c.add_option("--mqtt-password-file", s.mqtt.password_file,
               "File whose first line is the password of --mqtt-url's user");
  c.add_option("--mqtt-ca-file", s.mqtt.ca_file,
               "Authorities of the broker's certificate, a PEM file (default: the system's)");
  c.add_option("--mqtt-topic-prefix", s.mqtt.topic_prefix, "First levels of all topics")
      .capture_default_str();
  c.add_option("--mqtt-discovery-prefix", s.mqtt.discovery_prefix,
               "Where Home Assistant looks for devices; \"\": publish none there")
      .capture_default_str();
}

void add_tls(Command c, server::TlsOptions& tls) {
  c.add_option(
      "--ssl-certfile", tls.certificate_file,
      "Speak TLS with this certificate: a PEM file, with the chain that leads to it. It is "
      "read again when it changes");
  c.add_option("--ssl-keyfile", tls.key_file,
               "Key of the certificate, a PEM file; without it the key is in --ssl-certfile");
  c.add_option("--ssl-ca-certs", tls.client_ca_file,
               "Authorities of the clients' certificates, a PEM file");
  c.add_option_function<int>(
       "--ssl-cert-reqs",
       [&tls](int level) {
         tls.client_certificates = static_cast<server::TlsOptions::ClientCertificates>(level);
       },
       "Certificates of clients: 0 not asked for, 1 checked if there is one, 2 required")
      .default_str("0")
      .range(0, 2);
}

}  // namespace

void add_server_flags(Command c, server::ServerOptions& s) {
  c.add_option("--served-model-name", s.served_model_names,
               "Names of the base model; answers show the first one");
  add_address(c, s);
  add_tls(c, s.tls);
  c.add_flag("--trust-request-chat-template", s.trust_request_chat_template,
             "Let requests bring their own chat template");
  c.add_flag("!--no-special-tokens-in-content", s.special_tokens_in_content,
             "Read the spellings of special tokens in the texts of conversations as plain text");
  c.add_flag("--ollama-api", s.ollama_api, "Answer Ollama's API below /api/ as well");
  c.add_flag("!--no-ui", s.page, "No page to try the server at /, and none of its API at /docs");
  c.add_flag("--allow-runtime-lora-updating", s.allow_runtime_lora_updating,
             "Enable the endpoints that load, unload and pin adapters");
  c.add_option("--adapter-upload-dir", s.adapter_upload_dir,
               "Let clients upload adapters: keep them in this folder, made if it is not there; "
               "needs --allow-runtime-lora-updating");
  c.add_option("--adapter-upload-limit", s.uploads.one,
               "Bytes of one upload, which is in memory until it is whole")
      .human_integer()
      .default_str("256M");
  c.add_option("--adapter-upload-total", s.uploads.all, "Bytes of all uploaded adapters together")
      .human_integer()
      .default_str("4G");
  add_batches(c, s);
  add_streams(c, s);
  c.add_option("--allowed-lora-path", s.allowed_lora_paths,
               "Load adapters at run time from folders in this one alone; repeatable");
  c.add_option(
      "--lora-resolver-dir", s.lora_resolver_dir,
      "Folder of adapters to load on first use: an unknown model name is looked up as a subfolder");
  c.add_option("--api-key", s.api_keys, "API key that clients must send; repeatable")
      .envname("VALORA_API_KEY");
  c.add_flag("--allow-any-priority", s.allow_any_priority,
             "With --users or --applications: let requests have any priority, not only their "
             "default or a lower one");
  c.add_option("--allowed-hosts", s.allowed_hosts,
               "Hosts that requests may be for (their Host header): names or addresses, with or "
               "without a port; *.example.org for all below");
  c.add_option_function<std::vector<std::string>>(
      "--allowed-origins",
      [&s](const std::vector<std::string>& origins) {
        for (const std::string& origin : origins)
          s.cors_allowed_origins.push_back(unquoted(origin));
      },
      "Allowed CORS origins; * for any");
  c.add_option_function<double>(
       "--drain-timeout",
       [&s](double seconds) {
         s.drain_timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
       },
       "Seconds that a drain (SIGTERM) waits for running requests; 0: until they end")
      .range(0, 1e6);
}

}  // namespace valora::cli
