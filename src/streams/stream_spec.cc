#include "streams/stream_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json/parse_ordered.h"

namespace valora::streams {
namespace {

constexpr size_t kMaxSkills = 64, kMaxName = 256, kMaxUrl = 8192;
constexpr double kMostFps = 60, kLongestPeriod = 86'400;
constexpr int kMostAnswers = 10'000;  // of a hysteresis
constexpr JsonLimits kSpecLimits{.max_bytes = size_t{1} << 20, .max_depth = 32};

Error wrong_field(const std::string& path, const std::string& what) {
  return invalid(fmt::format("\"{}\" {}", path, what), path);
}

Result<double> number_at(const Json& object, const char* key, const std::string& path, double low,
                         double high, double fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  if (!found->is_number() || found->get<double>() < low || found->get<double>() > high)
    return wrong_field(path, fmt::format("must be a number from {} to {}", low, high));
  return found->get<double>();
}

Result<int> times_at(const Json& object, const char* key, const std::string& path, int fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  const auto value = as_integer(*found);
  if (!value || *value < 1 || *value > kMostAnswers)
    return wrong_field(path, fmt::format("must be a whole number from 1 to {}", kMostAnswers));
  return static_cast<int>(*value);
}

Status read_event(const Json& event, const std::string& path, StandingSkill& skill) {
  if (!event.is_object()) return wrong_field(path, "must be an object with \"when\"");
  for (const auto& [key, value] : event.items())
    if (key != "when" && key != "start_after" && key != "end_after")
      return wrong_field(path + "." + key, "is not known; known are when, start_after, end_after");
  if (!event.contains("when")) return wrong_field(path + ".when", "is missing");
  VALORA_TRY(when, Condition::parse(event["when"], path + ".when"));
  skill.when = std::move(when);
  VALORA_TRY(start, times_at(event, "start_after", path + ".start_after", 1));
  VALORA_TRY(end, times_at(event, "end_after", path + ".end_after", start));
  skill.start_after = start;
  skill.end_after = end;
  return {};
}

std::string name_of(const OrderedJson& skill) {
  if (skill.is_string()) return skill.get<std::string>();
  for (const char* key : {"name", "model"})
    if (skill.contains(key) && skill[key].is_string()) return skill[key].get<std::string>();
  return {};
}

Result<StandingSkill> read_skill(const OrderedJson& json, const std::string& path) {
  StandingSkill skill;
  skill.name = name_of(json);
  if (skill.name.empty())
    return wrong_field(path, "must be the name of a model, or an object with \"model\"");
  skill.request = json;
  if (!json.is_object()) return skill;
  const Json plain = Json::parse(json.dump());
  VALORA_TRY(every, number_at(plain, "every", path + ".every", 0, kLongestPeriod, 0));
  skill.every = every;
  if (plain.contains("event")) VALORA_CHECK(read_event(plain["event"], path + ".event", skill));
  for (const char* key : {"every", "event"}) skill.request.erase(key);
  return skill;
}

Status read_skills(const OrderedJson& json, StreamSpec& spec) {
  const auto found = json.find("skills");
  if (found == json.end() || !found->is_array() || found->empty() || found->size() > kMaxSkills)
    return wrong_field("skills", fmt::format("must be a list of 1 to {} skills", kMaxSkills));
  for (const OrderedJson& one : *found) {
    const std::string path = fmt::format("skills[{}]", spec.skills.size());
    VALORA_TRY(skill, read_skill(one, path));
    if (std::ranges::find(spec.skills, skill.name, &StandingSkill::name) != spec.skills.end())
      return wrong_field(path, "has the name of another skill; give it a \"name\" of its own");
    spec.skills.push_back(std::move(skill));
  }
  return {};
}

// 1 if absent.
Result<size_t> count_at(const Json& object, const char* key, const std::string& path, size_t most) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return size_t{1};
  const auto count = as_integer(*found);
  if (!count || *count < 1 || *count > static_cast<int64_t>(most))
    return wrong_field(path, fmt::format("must be a whole number from 1 to {}", most));
  return static_cast<size_t>(*count);
}

Status read_window(const Json& json, StreamSpec& spec) {
  const auto window = json.find("window");
  if (window == json.end() || window->is_null()) return {};
  if (!window->is_object() || window->contains("frames") == window->contains("seconds"))
    return wrong_field("window", "must be an object with \"frames\" or \"seconds\"");
  for (const auto& [key, value] : window->items())
    if (key != "frames" && key != "seconds" && key != "slide" && key != "as")
      return wrong_field("window." + key, "is not known");
  VALORA_TRY(seconds, number_at(*window, "seconds", "window.seconds", 0.01, 3600, 0));
  VALORA_TRY(frames, count_at(*window, "frames", "window.frames", FrameWindow::kMostFrames));
  VALORA_TRY(slide,
             count_at(*window, "slide", "window.slide", FrameWindow::kMostFrames - frames + 1));
  VALORA_TRY(as, field_or<std::string>(*window, "as", "video"));
  if (as != "video" && as != "pictures")
    return wrong_field("window.as", "must be \"video\" or \"pictures\"");
  spec.window = {frames, seconds, slide, as == "pictures"};
  return {};
}

Status read_webhook(const Json& json, StreamSpec& spec) {
  const auto found = json.find("webhook");
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_object()) return wrong_field("webhook", "must be an object with \"url\"");
  Webhook webhook;
  VALORA_TRY(url, required_field<std::string>(*found, "url"));
  VALORA_TRY(secret, field_or<std::string>(*found, "secret", ""));
  VALORA_TRY(answers, field_or<bool>(*found, "answers", false));
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return wrong_field("webhook.url", "must begin with http:// or https://");
  webhook.url = std::move(url);
  webhook.secret = std::move(secret);
  webhook.answers = answers;
  spec.webhook = std::move(webhook);
  return {};
}

Status read_mqtt(const Json& json, StreamSpec& spec) {
  const auto found = json.find("mqtt");
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_boolean() && !found->is_object())
    return wrong_field("mqtt", "must be true, false, or an object with answers and snapshots");
  spec.mqtt.on = spec.mqtt.asked = !found->is_boolean() || found->get<bool>();
  if (found->is_boolean()) return {};
  for (const auto& [key, value] : found->items()) {
    const std::string path = "mqtt." + key;
    if (key != "answers" && key != "snapshots")
      return wrong_field(path, "is not known; known are answers, snapshots");
    if (!value.is_boolean()) return wrong_field(path, "must be true or false");
    (key == "answers" ? spec.mqtt.answers : spec.mqtt.snapshots) = value.get<bool>();
  }
  return {};
}

Result<std::optional<StillRule>> read_still(const Json& json, const std::string& field) {
  const auto found = json.find(field);
  std::optional<StillRule> rule;
  if (found == json.end() || found->is_null()) return rule;
  if (!found->is_boolean() && !found->is_object())
    return wrong_field(field, "must be true, false, or an object with threshold and at_most");
  if (found->is_boolean() && !found->get<bool>()) return rule;
  rule.emplace();
  if (found->is_boolean()) return rule;
  for (const auto& [key, _] : found->items())
    if (key != "threshold" && key != "at_most")
      return wrong_field(field + "." + key, "is not known; known are threshold, at_most");
  VALORA_TRY(threshold,
             number_at(*found, "threshold", field + ".threshold", 0, 255, rule->threshold));
  VALORA_TRY(at_most,
             number_at(*found, "at_most", field + ".at_most", 0, kLongestPeriod, rule->at_most));
  rule = {threshold, at_most};
  return rule;
}

// Everything else is a field of the chats.
constexpr const char* kOwnKeys[] = {"name",   "source",     "fps",        "realtime",
                                    "window", "skills",     "webhook",    "mqtt",
                                    "paused", "skip_still", "key_frames", "still_blocks"};
constexpr const char* kRefusedKeys[] = {"messages", "stream", "model", "n", "stream_options"};

}  // namespace

Result<StreamSpec> parse_stream_spec(std::string_view text) {
  VALORA_TRY(json, parse_json(text, "the body", kSpecLimits));
  if (!json.is_object()) return invalid("the body must be a JSON object");
  StreamSpec spec;
  spec.json = parse_ordered(text);
  VALORA_TRY(name, field_or<std::string>(json, "name", ""));
  VALORA_TRY(source, required_field<std::string>(json, "source"));
  if (name.size() > kMaxName) return wrong_field("name", "is too long");
  if (source.empty() || source.size() > kMaxUrl)
    return wrong_field("source", "must be a URL, or \"push\"");
  spec.name = std::move(name);
  if (source != "push") spec.source = std::move(source);
  VALORA_TRY(fps, number_at(json, "fps", "fps", 0.001, kMostFps, 1));
  spec.fps = fps;
  VALORA_TRY(realtime, field_or<bool>(json, "realtime", true));
  spec.realtime = realtime;
  if (!realtime && !spec.source.starts_with("file://"))
    return wrong_field("realtime", "can be false for files only");
  VALORA_TRY(key_frames, field_or<bool>(json, "key_frames", false));
  if (key_frames && spec.pushed()) return wrong_field("key_frames", "is for sources alone");
  spec.key_frames = key_frames;
  VALORA_CHECK(read_window(json, spec));
  VALORA_CHECK(read_skills(spec.json, spec));
  VALORA_CHECK(read_webhook(json, spec));
  VALORA_CHECK(read_mqtt(json, spec));
  VALORA_TRY(still, read_still(json, "skip_still"));
  VALORA_TRY(still_blocks, read_still(json, "still_blocks"));
  if (still_blocks && spec.pushed())
    return wrong_field("still_blocks", "is for sources alone: pushed frames stay as they are");
  spec.still = still;
  spec.still_blocks = still_blocks;
  for (const char* key : kRefusedKeys)
    if (json.contains(key)) return wrong_field(key, "is no field of a stream");
  spec.shared = spec.json;
  for (const char* key : kOwnKeys) spec.shared.erase(key);
  return spec;
}

std::string without_password(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == url.npos) return url;
  const size_t begin = scheme + 3, end = std::min(url.find_first_of("/?#", begin), url.size());
  const size_t at = url.substr(0, end).rfind('@');
  return at == url.npos || at < begin ? url : url.substr(0, begin) + "***" + url.substr(at);
}

OrderedJson public_json(const StreamSpec& spec) {
  OrderedJson out = spec.json;
  out["source"] = spec.pushed() ? "push" : without_password(spec.source);
  if (spec.webhook) {
    out["webhook"]["url"] = without_password(spec.webhook->url);
    if (!spec.webhook->secret.empty()) out["webhook"]["secret"] = "***";
  }
  return out;
}

std::string chat_text(const StreamSpec& spec, const std::vector<size_t>& skills,
                      OrderedJson media) {
  OrderedJson out = spec.shared;
  OrderedJson& asked = out["skills"] = OrderedJson::array();
  for (const size_t i : skills) asked.push_back(spec.skills[i].request);
  out["messages"] = OrderedJson::array({{{"role", "user"}, {"content", std::move(media)}}});
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace valora::streams
