// `valora serve`: the engine behind the OpenAI server.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "api/options.h"
#include "api/waiting_calls.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/log/log.h"
#include "base/log/stderr_sink.h"
#include "base/machine/service_manager.h"
#include "base/result.h"
#include "base/text/human_bytes.h"
#include "cli/adapters_at_start.h"
#include "cli/command.h"
#include "cli/end_engine.h"
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/options/json_options.h"
#include "cli/options/media_flags.h"
#include "cli/options/named_option.h"
#include "cli/options/vllm_flags.h"
#include "cli/progress/format.h"
#include "cli/progress/stop_signals.h"
#include "cli/server_flags.h"
#include "engine/start/start_engine.h"
#include "media/video/video_decoder.h"
#include "server/applications/application.h"
#include "server/server.h"
#include "server/users/user.h"
#include "text/chat/chat_template.h"

namespace valora::cli {
namespace {

Result<Json> chat_template(const EngineOptions& options) {
  if (!options.chat_template.empty()) {
    VALORA_TRY(source, text::read_chat_template(options.chat_template));
    return Json(std::move(source.text));
  }
  VALORA_TRY(source, text::find_chat_template(options.model_path));
  return source ? Json(std::move(source->text)) : Json();
}

// The JSON of /tokenizer_info: the model folder's tokenizer_config.json, with the chat template
// that the engine uses; null for a model with a built-in format.
Result<std::string> tokenizer_info(const EngineOptions& options) {
  const std::string file = options.model_path + "/tokenizer_config.json";
  Json info = Json::object();
  if (file_exists(file)) {
    VALORA_TRY(config, read_json_file(file));
    if (!config.is_object()) return invalid(file + " must be an object", file);
    info = std::move(config);
  }
  VALORA_TRY(source, chat_template(options));
  info["chat_template"] = std::move(source);
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct ServeFlags {
  EngineOptions engine;
  server::ServerOptions server;
  AdapterSources adapters;
  HubFlags hub;
  std::string structured_outputs;
  MediaFlags media;
  std::string applications, users, ui_samples;
  std::string generation_config = "auto";
  std::string tool_call_parser = "auto";
  std::string video_decoder = "software";
  bool tokenizer_info = false;
  double stall_timeout = 60;       // seconds; 0: never
  std::vector<std::string> notes;  // about vLLM's flags
};

Status read_applications(const std::string& path, server::ServerOptions& options) {
  if (path.empty()) return {};
  VALORA_TRY(applications, server::read_applications(path));
  options.applications = std::move(applications);
  return {};
}

Status read_samples(const std::string& path, server::ServerOptions& options) {
  if (path.empty()) return {};
  VALORA_TRY(samples, server::read_samples(path));
  options.samples = std::move(samples);
  return {};
}

Status read_users(const std::string& path, server::ServerOptions& options) {
  if (path.empty()) return {};
  VALORA_TRY(users, server::read_users(path));
  options.users = std::move(users);
  return {};
}

Status open_decoder(const std::string& name, server::ServerOptions& options) {
  VALORA_TRY(decoder, media::open_video_decoder(name));
  options.video_decoder = std::move(decoder);
  return {};
}

// A broken folder among the thousands in a --lora-dir is skipped; its name is then unknown.
Status load_adapters(serving::LocalEngine& engine, const std::vector<LoadAdapter>& adapters) {
  for (const LoadAdapter& request : adapters) {
    const auto card = load_adapter_sync(engine, request);
    if (card.ok()) continue;
    const std::string message = "adapter " + request.name + ": " + card.error().message;
    if (!request.lazy || card.error().code == ErrorCode::kUnavailable)
      return Error{card.error().code, message, {}};
    spdlog::warn("{}; left out", message);
  }
  return {};
}

std::string adapter_names(const serving::LocalEngine& engine) {
  constexpr size_t kShown = 20;
  const std::vector<AdapterCard> cards = engine.adapters();
  if (cards.empty()) return "none";
  std::string names;
  for (size_t i = 0; i < std::min(cards.size(), kShown); ++i)
    names += (i == 0 ? "" : ", ") + cards[i].name;
  if (cards.size() > kShown) names += fmt::format(" and {} more", cards.size() - kShown);
  return names;
}

std::string welcome(const serving::LocalEngine& engine, const server::Server& server,
                    bool shows_page) {
  const ModelCard& m = engine.model();
  std::string text = fmt::format("valora {}\n", VALORA_VERSION);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  model     {}  ({}, {:.1f}M parameters, {}, {})\n", m.name, m.architecture,
                 double(m.parameters) / 1e6, m.dtype, m.device);
  fmt::format_to(out, "  adapters  {}\n", adapter_names(engine));
  fmt::format_to(
      out,
      "  memory    a pool of {} for adapters and KV: {} blocks of {} tokens; KV in {}, {} per "
      "token; sequences up to {} tokens\n",
      human_bytes(m.kv_bytes), m.kv_blocks, m.kv_block_tokens, m.kv_dtype,
      human_bytes(static_cast<size_t>(m.kv_token_bytes)), m.max_model_len);
  for (const std::string& note : engine.notes()) fmt::format_to(out, "  note      {}\n", note);
  const std::string url = server.url();
  fmt::format_to(out, "  serving   {}/v1   ({}metrics at {}/metrics)\n", url,
                 shows_page ? fmt::format("page at {}/, ", url) : "", url);
  return text;
}

std::vector<std::string> tool_call_parsers() {
  std::vector<std::string> names = {"auto"};
  for (const auto& [name, style] : kToolCallStyles) names.emplace_back(name);
  return names;
}

// If the template does not support tools, the prompt asks for the Hermes style.
void warn_about_parser(const serving::LocalEngine& engine, const server::ServerOptions& options) {
  const ModelCard& model = engine.model();
  if (options.tool_call_style && !model.template_takes_tools &&
      *options.tool_call_style != model.tool_calls)
    spdlog::warn(
        "--tool-call-parser: the chat template has no tools; prompts describe them in the "
        "hermes style, which another parser does not read");
}

Status set_tokenizer_info(ServeFlags& flags) {
  if (!flags.tokenizer_info) return {};
  VALORA_TRY(info, tokenizer_info(flags.engine));
  flags.server.tokenizer_info = std::move(info);
  return {};
}

Status apply_structured_outputs(ServeFlags& flags) {
  VALORA_TRY(spacing, read_structured_outputs(flags.structured_outputs));
  if (!spacing) return {};
  if (flags.engine.json_whitespace == JsonSpacing::kFree)
    return invalid(
        "--json-whitespace free and --structured-outputs-config with \"disable_any_whitespace\" "
        "exclude each other");
  flags.engine.json_whitespace = *spacing;
  return {};
}

// "vllm" ignores the file's sampling defaults, which is expressed as overrides.
Status apply_generation_config(ServeFlags& flags) {
  if (flags.generation_config != "vllm") return {};
  Json overrides = {{"do_sample", true},
                    {"temperature", 1},
                    {"top_p", 1},
                    {"top_k", 0},
                    {"repetition_penalty", 1}};
  std::string& text = flags.engine.generation_overrides;
  if (!text.empty()) {
    VALORA_TRY(own, parse_json(text, "--override-generation-config"));
    if (!own.is_object()) return {};  // reported by the engine
    overrides.update(own);
  }
  text = overrides.dump();
  return {};
}

std::vector<std::string> base_names(const ServeFlags& flags) {
  if (!flags.server.served_model_names.empty()) return flags.server.served_model_names;
  const EngineOptions& e = flags.engine;
  return {e.served_name.empty() ? e.model_path : e.served_name};
}

int run_serve(ServeFlags& flags) {
  outlive_output_readers();
  for (const std::string& note : flags.notes) spdlog::info("{}", note);
  if (const Status s = apply_media(flags.media, flags.engine); !s.ok()) return fail(s.error());
  if (const Status s = apply_structured_outputs(flags); !s.ok()) return fail(s.error());
  if (const Status s = apply_generation_config(flags); !s.ok()) return fail(s.error());
  if (const Status s = read_applications(flags.applications, flags.server); !s.ok())
    return fail(s.error());
  if (const Status s = read_users(flags.users, flags.server); !s.ok()) return fail(s.error());
  if (const Status s = read_samples(flags.ui_samples, flags.server); !s.ok())
    return fail(s.error());
  if (const Status s = open_decoder(flags.video_decoder, flags.server); !s.ok())
    return fail(s.error());
  flags.server.tool_call_style = tool_call_style(flags.tool_call_parser);
  if (!flags.server.served_model_names.empty())
    flags.engine.served_name = flags.server.served_model_names.front();
  flags.server.max_loras = flags.engine.max_loras;
  if (flags.server.batches.in_flight == 0)
    flags.server.batches.in_flight = std::max(1, flags.engine.max_num_seqs * 3 / 4);
  flags.server.media = flags.engine.fetch;
  flags.server.max_waiting = flags.engine.max_waiting;
  flags.engine.max_waiting = std::numeric_limits<int>::max();  // the server limits the queue
  if (const Status s = server::check(flags.server); !s.ok()) return fail(s.error());
  NamedFolders folders(flags.hub);
  if (const Status s = folders.set_model(flags.engine); !s.ok()) return fail(s.error());
  if (const Status s = set_tokenizer_info(flags); !s.ok()) return fail(s.error());
  const auto adapters = adapters_at_start(flags.adapters, base_names(flags), folders);
  if (!adapters.ok()) return fail(adapters.error());
  flags.server.default_adapters = adapters->defaults;
  std::unique_ptr<serving::LocalEngine> engine;  // destroyed after the server
  auto server = server::Server::listen(flags.server);
  if (!server.ok()) return fail(server.error());
  spdlog::info("listening on {}; /ready is 503 until the model is loaded", (*server)->url());
  auto started = start_engine(flags.engine);
  if (!started.ok()) return fail(started.error());
  engine = std::move(*started);
  if (flags.stall_timeout > 0) engine->start_watchdog(from_seconds(flags.stall_timeout));
  if (const Status s = load_adapters(*engine, adapters->loads); !s.ok()) return fail(s.error());
  warn_about_parser(*engine, flags.server);
  if (const Status s = (*server)->serve(*engine); !s.ok()) return fail(s.error());
  (*server)->watch_signals();  // before printing: a reader of the message may stop the server
  write_now(STDOUT_FILENO,
            welcome(*engine, **server, flags.server.page && flags.server.uds.empty()));
  notify_service_manager("READY=1");
  (*server)->run_until_stopped();
  server->reset();
  return end_engine(std::move(engine), flags.stall_timeout);
}

void add_media_memory(Command c, EngineOptions& e) {
  c.add_option("--media-workers", e.media_workers,
               "Threads that prepare images, and as many that prepare videos")
      .capture_default_str();
  c.add_option("--media-cache", e.media_cache_bytes,
               "Bytes of the cache of prepared images and videos, e.g. 2G; 0: none")
      .human_integer()
      .capture_default_str();
  c.add_option_function<double>(
       "--mm-processor-cache-gb",
       [&e](double gibibytes) {
         e.media_cache_bytes = static_cast<size_t>(gibibytes * double(1 << 30));
       },
       "vLLM's name of --media-cache, in GiB")
      .range(0, 1e6);
  c.add_flag_callback(
      "--disable-mm-preprocessor-cache", [&e] { e.media_cache_bytes = 0; },
      "vLLM's older name of --media-cache 0");
  c.add_option("--visual-cache", e.visual_cache_bytes,
               "Bytes of the cache of their embeddings, e.g. 2G; 0: none")
      .human_integer()
      .capture_default_str();
}

void add_sampling_defaults(Command c, EngineOptions& e) {
  c.add_option(
      "--seed", e.seed,
      "Requests without a seed draw reproducibly: with seeds that follow from this one, in "
      "the order of their arrival");
  c.add_option("--override-generation-config", e.generation_overrides,
               R"(Sampling defaults instead of generation_config.json's: {"temperature": 0.5})");
}

}  // namespace

void add_serve(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<ServeFlags>();
  EngineOptions& e = flags->engine;
  Command c = app.add_subcommand(
      "serve",
      "Serve a model and its adapters over the OpenAI API; --config FILE names a file of options");
  add_engine_flags(c, e);
  add_hub_flags(c, flags->hub);
  add_server_flags(c, flags->server);
  add_vllm_flags(c, flags->notes);
  add_media_memory(c, e);
  add_sampling_defaults(c, e);
  c.add_option("--generation-config", flags->generation_config,
               "vllm: no sampling defaults of the model's generation_config.json")
      .one_of({"auto", "vllm"})
      .capture_default_str();
  c.add_option("--structured-outputs-config", flags->structured_outputs,
               R"(vLLM's options of structured output; {"disable_any_whitespace": true} is )"
               "--json-whitespace compact");
  c.add_option("--lora-modules", flags->adapters.lora_modules,
               "Adapters to load, as NAME=PATH, NAME=OWNER/NAME or JSON; repeatable");
  c.add_option(
      "--manifest", flags->adapters.manifest,
      "manifest.json of `valora fuse`: loads its adapters and serves each task as a model name");
  c.add_option("--lora-dir", flags->adapters.lora_dirs,
               "Folder of adapters: each subfolder is served under its name. Only headers are read "
               "at start; values are read and checked when first needed; repeatable");
  c.add_option(
      "--default-mm-loras", flags->adapters.default_mm_loras,
      "Adapters of chats that name none and hold media: {\"image\": \"NAME or FOLDER\"}; a "
      "folder is served as image or video");
  c.add_option("--applications", flags->applications,
               "YAML file of applications: latency targets, priorities and limits by model, header "
               "or user");
  c.add_option("--max-logprobs", e.max_logprobs,
               "Highest number of alternatives per token that requests may ask for")
      .range(0, 1000)
      .capture_default_str();
  c.add_flag("--enable-tokenizer-info-endpoint", flags->tokenizer_info,
             "Show tokenizer_config.json and the chat template at /tokenizer_info");
  c.add_option("--max-cpu-loras", e.max_loras, "Highest number of loaded adapter names")
      .capture_default_str();
  c.add_option("--tool-call-parser", flags->tool_call_parser,
               "How answers write calls of tools; auto: as the chat template asks for them")
      .one_of(tool_call_parsers())
      .capture_default_str();
  add_named_option(c, "--reasoning-parser", e.reasoning_parser, parse_reasoning_parser,
                   "How answers mark their thoughts, which are given apart: auto (as the chat "
                   "template has it), none, qwen3, deepseek_r1 or mistral");
  c.add_option("--default-chat-template-kwargs", e.template_variables,
               R"(Variables of the chat template that requests do not set: {"enable_thinking": )"
               R"(false})");
  add_media_limits(c, flags->media);
  add_media_defaults(c, flags->media);
  c.add_option("--allowed-local-media-path", e.fetch.allowed_local_path,
               "Allow file:// media URLs for files in this folder");
  c.add_option("--allowed-video-devices", e.fetch.video_devices,
               "Cameras of this machine that streams may read: /dev/video0 as v4l2:///dev/video0");
  c.add_option("--video-decoder", flags->video_decoder,
               "Where live streams are decoded: software, a type of device that FFmpeg knows "
               "(vaapi, cuda, …, or with a device, vaapi:/dev/dri/renderD128), or auto, the first "
               "that can be opened, else software")
      .capture_default_str();
  c.add_flag(
      "--allow-media-urls", e.fetch.allow_http,
      "Fetch media from http(s) URLs: from --allowed-media-domains, or, without a list, from "
      "any host with a public address");
  c.add_flag("--media-proxy", e.fetch.use_proxy,
             "Fetch media through the proxy that http_proxy and https_proxy name");
  c.add_option("--allowed-media-domains", e.fetch.allowed_hosts,
               "With --allow-media-urls: fetch only from these hosts");
  c.add_option("--users", flags->users,
               "YAML file of users: API keys with names, models they may ask, quotas and shares");
  c.add_option("--ui-samples", flags->ui_samples,
               "JSON list of pictures and clips with questions, which the page offers to try");
  c.add_option(
       "--max-waiting", e.max_waiting,
       "Highest number of waiting requests, each counted n times its prompts; more get HTTP "
       "429")
      .capture_default_str();
  c.add_option("--stall-timeout", flags->stall_timeout,
               "Seconds without progress after which /health is 503 and drains end; 0: never")
      .range(0, 1e6)
      .capture_default_str();
  c.callback([flags, &run] { run = [flags] { return run_serve(*flags); }; });
}

}  // namespace valora::cli
