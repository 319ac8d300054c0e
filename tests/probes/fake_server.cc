// Serves a FakeEngine with the echo script over HTTP, for client tests.
// Usage: fake_server [--port N] [--api-key KEY] [--cors ORIGIN] [--max-queued N]
// Prints its URL on stdout once it listens.
#include <cstdio>
#include <string>

#include "base/log/log.h"
#include "server/server.h"
#include "server/testing/echo_script.h"

int main(int argc, char** argv) {
  valora::server::ServerOptions options;
  options.port = 0;
  options.allow_runtime_lora_updating = true;
  options.max_loras = 4;
  size_t max_queued = 1024;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--port")
      options.port = static_cast<uint16_t>(std::stoi(value));
    else if (name == "--api-key")
      options.api_keys.push_back(value);
    else if (name == "--cors")
      options.cors_allowed_origins.push_back(value);
    else if (name == "--max-queued")
      max_queued = std::stoul(value);
    else
      return std::fprintf(stderr, "unknown option %s\n", name.c_str()), 2;
  }
  valora::set_up_logging("warning");
  valora::testing::FakeEngine engine(valora::server::testing::echo_options(max_queued));
  engine.add_adapter("lens");
  engine.add_adapter("birds", {{"species", {"cat", "dog", "owl"}}});
  auto server = valora::server::Server::start(options, engine);
  if (!server.ok()) return std::fprintf(stderr, "%s\n", server.error().message.c_str()), 1;
  (*server)->watch_signals();
  std::printf("%s\n", (*server)->url().c_str());
  std::fflush(stdout);
  (*server)->run_until_stopped();
  return 0;
}
