// `valora watch`: a stream of a running server, in a terminal.
#include <fmt/format.h>

#include <cstdio>

#include "base/json/parse_ordered.h"
#include "cli/command.h"
#include "cli/progress/stop_signals.h"
#include "cli/watch/event_line.h"
#include "cli/watch/server_client.h"

namespace valora::cli {
namespace {

constexpr const char* kStreams = "/v1/streams";

struct WatchFlags {
  std::string source, stream, server = "http://127.0.0.1:8000", api_key, prompt, name;
  std::vector<std::string> skills;
  std::optional<double> every, fps;
  std::optional<int> max_tokens;
  bool json = false, keep = false;
};

Status check_watch(const WatchFlags& flags) {
  if (flags.source.empty() == flags.stream.empty())
    return invalid("give a source, or --stream ID of a stream that is there");
  const bool describes = !flags.skills.empty() || !flags.prompt.empty() || !flags.name.empty() ||
                         flags.every || flags.fps || flags.max_tokens || flags.keep;
  if (!flags.stream.empty() && describes)
    return invalid("--stream takes a stream as it is, without --skills, --every, --fps and others");
  if (flags.stream.empty() && flags.skills.empty())
    return invalid("--skills is missing: the models or tasks that are asked", "skills");
  if (flags.source == "push")
    return invalid("frames cannot be pushed from here; push them to /v1/streams, and use --stream");
  if (!flags.source.empty() && source_url(flags.source).find("://") == std::string::npos)
    return not_found(flags.source + " is neither a URL nor a file that is there", "source");
  return {};
}

std::string description_of(const WatchFlags& flags) {
  OrderedJson out{{"source", source_url(flags.source)}, {"skills", OrderedJson::array()}};
  for (const std::string& skill : flags.skills) {
    OrderedJson& asked = out["skills"].emplace_back(OrderedJson{{"model", skill}});
    if (!flags.prompt.empty()) asked["question"] = flags.prompt;
    if (flags.every) asked["every"] = *flags.every;
  }
  if (!flags.name.empty()) out["name"] = flags.name;
  if (flags.fps) out["fps"] = *flags.fps;
  if (flags.max_tokens) out["max_tokens"] = *flags.max_tokens;
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string text_of(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_over(const std::string& state) { return state == "ended" || state == "failed"; }

// How a stream ended; empty: it has not, or was deleted.
Result<std::string> print_events(const WatchFlags& flags, const ServerClient& server,
                                 const std::string& path, const std::string& after,
                                 const std::stop_token& stop) {
  std::string over;
  bool printed = true;
  const auto print = [&](std::string_view data) {
    const OrderedJson event = parse_ordered(data);
    if (!event.is_object()) return true;
    fmt::print("{}\n", flags.json ? std::string(data) : event_line(event));
    printed = std::fflush(stdout) == 0;
    if (const std::string state = text_of(event, "state"); is_over(state)) over = state;
    return printed && over.empty();
  };
  const Status listened = server.listen(path + "/events" + after, print, stop);
  if (!listened.ok() && listened.error().code != ErrorCode::kCancelled) return listened.error();
  if (!printed || stop.stop_requested() || !over.empty()) return over;
  // The server ended the events: it stops, or the stream was deleted.
  VALORA_TRY(stats, server.ask("GET", "/v1/stats"));
  const auto left = server.ask("GET", path);
  if (left.ok() || text_of(stats, "state") != "ready")
    return Error{ErrorCode::kUnavailable, "the server is stopping", {}};
  if (left.error().code != ErrorCode::kNotFound) return left.error();
  fmt::print(stderr, "the stream was deleted\n");
  return over;
}

Result<std::string> watch_own(const WatchFlags& flags, const ServerClient& server,
                              const std::stop_token& stop) {
  VALORA_TRY(stream, server.ask("POST", kStreams, description_of(flags)));
  const std::string id = text_of(stream, "id"), path = fmt::format("{}/{}", kStreams, id);
  if (id.empty()) return unprocessable(flags.server + " does not answer as valora does");
  fmt::print(stderr, "stream {}; Ctrl-C ends it{}\n", id,
             flags.keep ? " here, and it goes on" : "");
  auto over = print_events(flags, server, path, "?after=0", stop);
  if (flags.keep) return over;
  const auto removed = server.ask("DELETE", path);
  if (!removed.ok() && removed.error().code != ErrorCode::kNotFound && over.ok())
    return Error{removed.error().code, "the stream goes on: " + removed.error().message, {}};
  return over;
}

Result<std::string> watch_existing(const WatchFlags& flags, const ServerClient& server,
                                   const std::stop_token& stop) {
  const std::string path = fmt::format("{}/{}", kStreams, flags.stream);
  VALORA_TRY(stream, server.ask("GET", path, {}, stop));
  const std::string state = text_of(stream, "state"), reason = text_of(stream, "reason");
  fmt::print(stderr, "stream {} is {}{}{}\n", flags.stream, state, reason.empty() ? "" : ": ",
             reason);
  if (is_over(state)) return state;
  return print_events(flags, server, path, "", stop);
}

int run_watch(const WatchFlags& flags) {
  if (const Status s = check_watch(flags); !s.ok()) return fail(s.error());
  outlive_output_readers();  // the stream is to be deleted then, too
  const StopSignals signals;
  const ServerClient server(flags.server, flags.api_key);
  const auto over = flags.stream.empty() ? watch_own(flags, server, signals.token())
                                         : watch_existing(flags, server, signals.token());
  if (!over.ok() && over.error().code == ErrorCode::kCancelled) return 0;
  if (!over.ok()) return fail(over.error());
  return *over == "failed" ? 1 : 0;
}

}  // namespace

void add_watch(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<WatchFlags>();
  Command c = app.add_subcommand(
      "watch",
      "Watch a camera or a video file with models of a running server, and print what they see "
      "(docs/streams.md)");
  c.add_option("source", flags->source,
               "The camera: rtsp://, http:// and others; or a video file that the server may read");
  c.add_option("--skills", flags->skills, "Models or tasks that are asked, as A,B; repeatable")
      .delimiter(',')
      .allow_extra_args(false);
  c.add_option("--stream", flags->stream,
               "Watch this stream, which is there already, from now on; it stays");
  c.add_option("--server", flags->server, "The server's URL").capture_default_str();
  c.add_option("--api-key", flags->api_key, "Key for the server").envname("VALORA_API_KEY");
  c.add_option("--prompt", flags->prompt, "The question to all skills (default: each task's)");
  c.add_option("--every", flags->every, "Seconds between two answers, at least").range(0, 86'400);
  c.add_option("--fps", flags->fps, "Most frames per second that are looked at (default: 1)")
      .range(0.001, 60);
  c.add_option("--max-tokens", flags->max_tokens, "Highest number of tokens in an answer");
  c.add_option("--name", flags->name, "Name of the stream");
  c.add_flag("--json", flags->json, "Print events as JSON, one a line");
  c.add_flag("--keep", flags->keep, "Leave the stream to the server at the end");
  c.callback([flags, &run] { run = [flags] { return run_watch(*flags); }; });
}

}  // namespace valora::cli
