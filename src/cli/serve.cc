// `valora serve`: the engine behind the OpenAI server.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "api/waiting_calls.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/adapters_at_start.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/options/vllm_flags.h"
#include "engine/serving_engine.h"
#include "server/applications/applications_file.h"
#include "server/server.h"

namespace valora::cli {
namespace {

struct Flags {
  EngineOptions engine;
  server::ServerOptions server;
  AdapterSources adapters;
  std::string limit_mm_per_prompt;
  std::string applications;
  std::vector<std::string> notes;  // of vLLM's flags
};

// image=N,video=M as JSON; JSON as it is.
std::string as_json(const std::string& text) {
  if (text.starts_with('{')) return text;
  std::string json = "{\"";
  for (const char c : text)
    if (c == '=')
      json += "\":";
    else if (c == ',')
      json += ",\"";
    else
      json += c;
  return json + "}";
}

// {"image": N, "video": M}, or vLLM's older image=N,video=M
Status apply_media_limits(const std::string& text, MediaLimits& limits) {
  if (text.empty()) return {};
  VALORA_TRY(json, parse_json(as_json(text), "--limit-mm-per-prompt"));
  VALORA_TRY(images, field_or<int32_t>(json, "image", limits.images));
  VALORA_TRY(videos, field_or<int32_t>(json, "video", limits.videos));
  if (images < 0 || videos < 0) return invalid("--limit-mm-per-prompt takes numbers of 0 or more");
  limits = {images, videos};
  return {};
}

Status read_applications(const std::string& path, server::ServerOptions& options) {
  if (path.empty()) return {};
  VALORA_TRY(applications, server::read_applications(path));
  options.applications = std::move(applications);
  return {};
}

// One broken folder among the thousands of a --lora-dir is left out. Its name is then unknown.
Status load_adapters(ServingEngine& engine, const std::vector<LoadAdapter>& adapters) {
  for (const LoadAdapter& request : adapters) {
    const auto card = load_adapter_now(engine, request);
    if (card.ok()) continue;
    const std::string message = "adapter " + request.name + ": " + card.error().message;
    if (!request.lazy || card.error().code == ErrorCode::kUnavailable)
      return Error{card.error().code, message, {}};
    spdlog::warn("{}; left out", message);
  }
  return {};
}

std::string adapter_names(const ServingEngine& engine) {
  constexpr size_t kShown = 20;
  const std::vector<AdapterCard> cards = engine.adapters();
  if (cards.empty()) return "none";
  std::string names;
  for (size_t i = 0; i < std::min(cards.size(), kShown); ++i)
    names += (i == 0 ? "" : ", ") + cards[i].name;
  if (cards.size() > kShown) names += fmt::format(" and {} more", cards.size() - kShown);
  return names;
}

void print_welcome(const ServingEngine& engine, const server::Server& server) {
  const ModelCard& m = engine.model();
  fmt::print("valora {}\n", VALORA_VERSION);
  fmt::print("  model     {}  ({}, {:.1f}M parameters, {}, {})\n", m.name, m.architecture,
             double(m.parameters) / 1e6, m.dtype, m.device);
  fmt::print("  adapters  {}\n", adapter_names(engine));
  fmt::print(
      "  memory    a pool of {} for adapters and KV: {} blocks of {} tokens; sequences up to {} "
      "tokens\n",
      human_bytes(m.kv_bytes), m.kv_blocks, m.kv_block_tokens, m.max_model_len);
  for (const std::string& note : engine.notes()) fmt::print("  note      {}\n", note);
  fmt::print("  serving   {}/v1   (metrics at {}/metrics)\n", server.url(), server.url());
  std::fflush(stdout);
}

int run_serve(Flags& flags) {
  for (const std::string& note : flags.notes) spdlog::info(note);
  if (const Status s = apply_media_limits(flags.limit_mm_per_prompt, flags.engine.media_limits);
      !s.ok())
    return fail(s.error());
  if (const Status s = read_applications(flags.applications, flags.server); !s.ok())
    return fail(s.error());
  if (!flags.server.served_model_names.empty())
    flags.engine.served_name = flags.server.served_model_names.front();
  flags.server.max_loras = flags.engine.max_loras;
  flags.server.max_waiting = flags.engine.max_waiting;
  std::vector<std::string> base_names = flags.server.served_model_names;
  if (base_names.empty()) base_names = {flags.engine.model_path};
  const auto adapters = adapters_at_start(flags.adapters, base_names);
  if (!adapters.ok()) return fail(adapters.error());
  auto engine = ServingEngine::start(flags.engine);
  if (!engine.ok()) return fail(engine.error());
  if (const Status s = load_adapters(**engine, *adapters); !s.ok()) return fail(s.error());
  auto server = server::Server::start(flags.server, **engine);
  if (!server.ok()) return fail(server.error());
  (*server)->watch_signals();  // who reads the welcome may stop it
  print_welcome(**engine, **server);
  (*server)->run_until_stopped();
  return 0;
}

}  // namespace

void add_serve(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<Flags>();
  EngineOptions& e = flags->engine;
  server::ServerOptions& s = flags->server;
  Command c = app.add_subcommand("serve", "Serve a model and its adapters over the OpenAI API");
  add_engine_flags(c, e);
  add_vllm_flags(c, flags->notes);
  c.add_option("--served-model-name", s.served_model_names,
               "Names of the base model; answers show the first one");
  c.add_option("--host", s.host, "Address to listen on").capture_default_str();
  c.add_option("--port", s.port, "Port to listen on; 0: any free port").capture_default_str();
  c.add_option("--lora-modules", flags->adapters.lora_modules,
               "Adapters to load, as NAME=PATH or JSON; repeatable");
  c.add_option(
      "--manifest", flags->adapters.manifest,
      "manifest.json of `valora fuse`: loads its adapters and serves each task as a model name");
  c.add_option("--lora-dir", flags->adapters.lora_dirs,
               "Folder of adapters: each subfolder is served under its name. Only headers are read "
               "at start; values are read and checked when first needed; repeatable");
  c.add_option("--applications", flags->applications,
               "YAML file of applications: latency targets, priorities and limits by model, header "
               "or user");
  c.add_option("--max-cpu-loras", e.max_loras, "Highest number of loaded adapter names")
      .capture_default_str();
  c.add_flag("--allow-runtime-lora-updating", s.allow_runtime_lora_updating,
             "Enable the endpoints that load and unload adapters");
  c.add_option(
      "--lora-resolver-dir", s.lora_resolver_dir,
      "Folder of adapters to load on first use: an unknown model name is looked up as a subfolder");
  c.add_option(
      "--limit-mm-per-prompt", flags->limit_mm_per_prompt,
      R"(Highest number of media per prompt: {"image": 16, "video": 4}, or image=16,video=4)");
  c.add_option("--allowed-local-media-path", e.fetch.allowed_local_path,
               "Allow file:// media URLs for files in this folder");
  c.add_flag("--allow-media-urls", e.fetch.allow_http, "Fetch media from http(s) URLs");
  c.add_option("--allowed-media-domains", e.fetch.allowed_hosts,
               "With --allow-media-urls: fetch only from these hosts");
  c.add_option("--api-key", s.api_keys, "API key that clients must send; repeatable")
      .envname("VALORA_API_KEY");
  c.add_option("--allowed-origins", s.cors_allowed_origins, "Allowed CORS origins; * for any");
  c.add_option(
       "--max-waiting", e.max_waiting,
       "Highest number of waiting requests, each counted n times its prompts; more get HTTP "
       "429")
      .capture_default_str();
  c.add_option_function<double>(
       "--drain-timeout",
       [&s](double seconds) {
         s.drain_timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
       },
       "Seconds that a drain (SIGTERM) waits for running requests; 0: until they end")
      .range(0, 1e6);
  c.add_option("--media-workers", e.media_workers,
               "Threads that prepare images, and as many that prepare videos")
      .capture_default_str();
  c.add_option("--media-cache", e.media_cache_bytes,
               "Bytes of the cache of prepared images and videos, e.g. 2G; 0: none")
      .human_integer()
      .capture_default_str();
  c.add_option("--visual-cache", e.visual_cache_bytes,
               "Bytes of the cache of their embeddings, e.g. 2G; 0: none")
      .human_integer()
      .capture_default_str();
  c.callback([flags, &run] { run = [flags] { return run_serve(*flags); }; });
}

}  // namespace valora::cli
