#include "server/handlers/streams/streams.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text/strings.h"
#include "base/text/visible_text.h"
#include "media/video/live_video.h"
#include "server/handlers/batches/batch_access.h"
#include "server/handlers/streams/stream_asker.h"
#include "server/handlers/viewer.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"
#include "server/openai/skills.h"
#include "server/openai/sse.h"
#include "streams/stream_set.h"

namespace valora::server {
namespace {

using streams::StreamPtr;

constexpr ListLimits kStreamLists{20, 100};
constexpr int64_t kMostEvents = 1000;
constexpr std::string_view kSmallestPicture =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+"
    "kcQAAAABJRU5ErkJggg==";

// The response without --streams-dir, and of a server that drains: it has left its streams.
std::optional<HttpResponse> refuse_streams(const Service& service) {
  if (service.streams == nullptr)
    return error_response(403, "this server takes no streams; start it with --streams-dir DIR");
  if (service.draining) return error_response(503, "the server is draining");
  return std::nullopt;
}

OrderedJson counts_json(const streams::StreamCounts& counts) {
  return {{"frames", counts.frames.came},
          {"dropped", counts.frames.dropped},
          {"answered", counts.answered},
          {"skipped", counts.skipped},
          {"still", counts.still},
          {"still_blocks", counts.blocks.all == 0 ? 0.0
                                                  : static_cast<double>(counts.blocks.still) /
                                                        static_cast<double>(counts.blocks.all)},
          {"failed", counts.failed},
          {"events", counts.events},
          {"reconnects", counts.reconnects},
          {"lag", counts.lag}};
}

OrderedJson stream_json(const Service& service, streams::Stream& stream) {
  OrderedJson out{
      {"id", stream.id()}, {"object", "stream"}, {"state", streams::state_name(stream.state())}};
  if (const std::string reason = stream.reason(); !reason.empty()) out["reason"] = reason;
  out["counts"] = counts_json(stream.counts());
  out["last_event"] = stream.events().last();
  OrderedJson spec = public_json(stream.spec());
  spec.erase("paused");
  out.update(spec);
  const std::string topic = service.mqtt ? service.mqtt->topic_of(stream.id()) : std::string();
  if (!topic.empty()) out["mqtt_topic"] = topic;
  return out;
}

OrderedJson mqtt_json(const streams::MqttOutput& mqtt) {
  const streams::MqttStatus broker = mqtt.status();
  const streams::MqttCounts messages = mqtt.counts();
  OrderedJson out{{"connected", broker.connected}};
  if (!broker.reason.empty()) out["reason"] = broker.reason;
  out.update({{"connections", broker.connections},
              {"sent", messages.sent},
              {"waiting", messages.waiting},
              {"dropped", messages.dropped}});
  return out;
}

// The request's stream; null, after an answer, if there is none.
StreamPtr stream_of(const Service& service, const HttpRequest& request, Exchange& exchange) {
  if (auto refused = refuse_streams(service)) {
    exchange.respond(std::move(*refused));
    return nullptr;
  }
  const std::string id = id_in_path(request.path, kStreamsPath);
  StreamPtr stream = service.streams->find(id);
  if (stream && sees_records_of(service, request, stream->owner())) return stream;
  exchange.respond(error_response(
      404, fmt::format("No stream found with id '{}'.", shortened(visible(id), 60)), "id"));
  return nullptr;
}

// A resolver may know models later.
Status check_models(const Service& service, const HttpRequest& request, const SkillsBody& body) {
  if (!service.options.lora_resolver_dir.empty()) return {};
  const Viewer viewer(service, request);
  for (const Skill& skill : body.skills) {
    const std::string& model = skill.body.target.model;
    if (!model.empty() && !viewer.knows(model)) return model_not_found(model);
  }
  return {};
}

// The pictures of a question. A short window of seconds may have fewer.
Status check_window(const ModelCard& model, const streams::WindowRule& window) {
  const auto pictures = static_cast<int>(window.most()), most = model.media_limits.images;
  if (model.videos && !window.as_pictures) {
    if (pictures == 1 || model.media_limits.videos > 0) return {};
    return invalid("\"window\" is a video, and this server takes none (--limit-mm-per-prompt)",
                   "window");
  }
  if (pictures <= most) return {};
  return invalid(fmt::format("\"window\" has up to {} pictures, but this server takes {} per "
                             "request (--limit-mm-per-prompt)",
                             pictures, most),
                 "window");
}

// The skills, as a chat would check them, and the places that the stream reads and writes.
Status check_stream(const Service& service, const HttpRequest& request,
                    const streams::StreamSpec& spec) {
  const media::FetchPolicy policy = fetch_policy(service.options.media);
  if (!spec.pushed()) VALORA_CHECK(media::check_live_url(spec.source, policy));
  if (spec.webhook) {
    const Status allowed = media::check_live_url(spec.webhook->url, policy);
    if (!allowed.ok()) return invalid("the webhook: " + allowed.error().message, "webhook.url");
  }
  if (spec.mqtt.asked && service.mqtt == nullptr)
    return invalid("this server has no MQTT broker; start it with --mqtt-url URL", "mqtt");
  VALORA_CHECK(check_window(service.engine.model(), spec.window));
  std::vector<size_t> all(spec.skills.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const OrderedJson picture =
      OrderedJson::array({{{"type", "image_url"}, {"image_url", {{"url", kSmallestPicture}}}}});
  const auto parsed = parse_skills(chat_text(spec, all, picture), service.request_limits(request));
  if (!parsed.ok()) return parsed.error();
  return *parsed ? check_models(service, request, **parsed) : Status();
}

Result<int64_t> number_in_query(const HttpRequest& request, const char* key, int64_t fallback) {
  const auto text = query_value(request.query, key);
  if (!text) return fallback;
  int64_t number = 0;
  const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (fault != std::errc() || end != text->data() + text->size() || number < 0)
    return invalid(fmt::format("\"{}\" must be a whole number, 0 or more", key), key);
  return number;
}

void send_events(const StreamPtr& stream, int64_t after,
                 const std::shared_ptr<Exchange>& exchange) {
  exchange->begin_stream(event_stream());
  const uint64_t listener =
      stream->events().listen(after, [exchange](const streams::EventPtr& event) {
        if (!event) return exchange->end_stream();
        exchange->write(fmt::format("id: {}\nevent: {}\n", event->id, event->type) +
                        sse_event(event->json));
      });
  exchange->on_disconnect([stream, listener] { stream->events().forget(listener); });
}

void set_paused(const std::shared_ptr<Service>& service, const HttpRequest& request,
                Exchange& exchange, bool paused) {
  const StreamPtr stream = stream_of(*service, request, exchange);
  if (!stream) return;
  const Status done = service->streams->set_paused(stream, paused);
  if (!done.ok() && done.error().code == ErrorCode::kUnavailable)
    return exchange.respond(error_response(507, done.error().message));
  if (!done.ok()) return exchange.respond(error_response(done.error()));
  exchange.respond({.body = to_text(stream_json(*service, *stream))});
}

}  // namespace

void handle_create_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange) {
  if (auto refused = refuse_streams(*service)) return exchange->respond(std::move(*refused));
  auto spec = streams::parse_stream_spec(request.body);
  if (!spec.ok()) return exchange->respond(error_response(spec.error()));
  if (const Status checked = check_stream(*service, request, *spec); !checked.ok())
    return exchange->respond(error_response(checked.error()));
  const bool paused = spec->json.value("paused", false);
  const auto added = service->streams->add(owner_of(*service, request), std::move(*spec), paused);
  if (!added.ok() && added.error().code == ErrorCode::kUnavailable)
    return exchange->respond(error_response(507, added.error().message));
  if (!added.ok()) return exchange->respond(error_response(added.error(), 60));
  exchange->respond({.body = to_text(stream_json(*service, **added))});
}

void handle_streams(const std::shared_ptr<Service>& service, HttpRequest request,
                    std::shared_ptr<Exchange> exchange) {
  if (auto refused = refuse_streams(*service)) return exchange->respond(std::move(*refused));
  std::vector<StreamPtr> seen = service->streams->all();
  std::erase_if(seen, [&](const StreamPtr& stream) {
    return !sees_records_of(*service, request, stream->owner());
  });
  std::vector<std::string> ids;
  for (const StreamPtr& stream : seen) ids.push_back(stream->id());
  auto page = list_page(ids, request.query, kStreamLists,
                        [&](size_t index) { return stream_json(*service, *seen[index]); });
  if (!page.ok()) return exchange->respond(error_response(page.error()));
  if (service->mqtt) (*page)["mqtt"] = mqtt_json(*service->mqtt);
  exchange->respond({.body = to_text(*page)});
}

void handle_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                   std::shared_ptr<Exchange> exchange) {
  if (const StreamPtr stream = stream_of(*service, request, *exchange))
    exchange->respond({.body = to_text(stream_json(*service, *stream))});
}

void handle_delete_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange) {
  const StreamPtr stream = stream_of(*service, request, *exchange);
  if (!stream) return;
  const Status removed = service->streams->remove(stream->id());
  if (!removed.ok()) return exchange->respond(error_response(removed.error()));
  exchange->respond(
      {.body = to_text({{"id", stream->id()}, {"object", "stream.deleted"}, {"deleted", true}})});
}

void handle_pause_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  set_paused(service, request, *exchange, true);
}

void handle_resume_stream(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange) {
  set_paused(service, request, *exchange, false);
}

std::optional<HttpResponse> check_frame_header(const Service& service, const HttpRequest& head) {
  if (auto refused = refuse_streams(service)) return refused;
  if (head.header("content-type").starts_with("image/")) return std::nullopt;
  return error_response(415, "the content type must be that of a picture, such as image/jpeg");
}

void handle_push_frame(const std::shared_ptr<Service>& service, HttpRequest request,
                       std::shared_ptr<Exchange> exchange) {
  const StreamPtr stream = stream_of(*service, request, *exchange);
  if (!stream) return;
  const auto pushed = stream->push(std::move(request.body));
  if (!pushed.ok()) return exchange->respond(error_response(pushed.error()));
  exchange->respond({.body = to_text({{"stream", stream->id()}, {"frame", *pushed}})});
}

void handle_frame(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const StreamPtr stream = stream_of(*service, request, *exchange);
  if (!stream) return;
  const std::string name = request.path.substr(request.path.rfind('/') + 1);
  int64_t id = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), id);
  const bool numbered = fault == std::errc() && end == name.data() + name.size() && id > 0;
  const auto frame = numbered || name == "latest" ? stream->frame(numbered ? id : 0) : nullptr;
  if (!frame)
    return exchange->respond(error_response(
        404,
        "there is no such frame, or it is kept no more: the newest one is, and the last of events",
        "frame_id"));
  exchange->respond(
      {.content_type = frame->type,
       .body = frame->bytes,
       .headers = {{"X-Frame-Id", std::to_string(frame->id)}, {"Cache-Control", "no-store"}}});
}

void handle_stream_events(const std::shared_ptr<Service>& service, HttpRequest request,
                          std::shared_ptr<Exchange> exchange) {
  const StreamPtr stream = stream_of(*service, request, *exchange);
  if (!stream) return;
  const bool streams = request.header("Accept").find("text/event-stream") != std::string_view::npos;
  const auto last = number_in_query(request, "after", streams ? stream->events().last() : 0);
  if (!last.ok()) return exchange->respond(error_response(last.error()));
  if (streams) {
    int64_t after = *last;
    const std::string_view known = request.header("Last-Event-ID");  // of a client that comes again
    std::from_chars(known.data(), known.data() + known.size(), after);
    return send_events(stream, after, exchange);
  }
  const auto limit = number_in_query(request, "limit", 100);
  if (!limit.ok()) return exchange->respond(error_response(limit.error()));
  OrderedJson data = OrderedJson::array();
  for (const streams::EventPtr& event :
       stream->events().after(*last, static_cast<size_t>(std::min(*limit, kMostEvents))))
    data.push_back(OrderedJson::parse(event->json));
  exchange->respond({.body = to_text({{"object", "list"},
                                      {"data", std::move(data)},
                                      {"last_event", stream->events().last()}})});
}

}  // namespace valora::server
