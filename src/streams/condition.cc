#include "streams/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/strings.h"

namespace valora::streams {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxParts = 32, kMaxLabels = 256, kMaxCorners = 64;

Error wrong(const std::string& path, const std::string& what) {
  return invalid(fmt::format("\"{}\" {}", path, what), path);
}

Result<std::vector<std::string>> labels_at(const Json& json, const std::string& path) {
  std::vector<std::string> labels;
  const auto add = [&](const Json& label) {
    if (!label.is_string() || label.get_ref<const std::string&>().empty()) return false;
    labels.push_back(label.get<std::string>());
    return true;
  };
  const bool ok = json.is_array()
                      ? !json.empty() && json.size() <= kMaxLabels && std::ranges::all_of(json, add)
                      : add(json);
  if (!ok) return wrong(path, fmt::format("must be a label or up to {} labels", kMaxLabels));
  return labels;
}

Result<double> share_at(const Json& json, const std::string& path) {
  if (!json.is_number() || json.get<double>() < 0 || json.get<double>() > 1)
    return wrong(path, "must be a number from 0 to 1");
  return json.get<double>();
}

Result<int64_t> count_at(const Json& json, const std::string& path) {
  const auto count = as_integer(json);
  if (!count || *count < 0) return wrong(path, "must be a whole number, 0 or more");
  return *count;
}

Status check_keys(const Json& json, const std::string& path,
                  std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : json.items())
    if (std::ranges::find(known, key) == known.end())
      return wrong(path + "." + key,
                   fmt::format("is not known here; known are {}", fmt::join(known, ", ")));
  return {};
}

}  // namespace

Result<Condition> Condition::parse(const Json& json, const std::string& path) {
  return parse_at(json, path, 0);
}

Result<std::vector<Condition::Point>> Condition::parse_zone(const Json& json,
                                                            const std::string& path) {
  std::vector<Point> zone;
  if (json.is_array() && json.size() >= 3 && json.size() <= kMaxCorners)
    for (const Json& corner : json) {
      if (!corner.is_array() || corner.size() != 2) break;
      VALORA_TRY(x, share_at(corner[0], path));
      VALORA_TRY(y, share_at(corner[1], path));
      zone.push_back({x, y});
    }
  if (zone.size() < 3 || zone.size() != json.size())
    return wrong(path, fmt::format("must be a list of 3 to {} corners [x, y], as shares of the "
                                   "frame's width and height",
                                   kMaxCorners));
  return zone;
}

Status Condition::parse_boxes(const Json& json, const std::string& path, Condition& out) {
  if (!json.is_object()) return wrong(path, "must be an object");
  VALORA_CHECK(check_keys(json, path, {"label", "min", "max", "zone", "min_confidence"}));
  if (json.contains("label")) {
    VALORA_TRY(labels, labels_at(json["label"], path + ".label"));
    out.labels_ = std::move(labels);
  }
  if (json.contains("max")) {
    VALORA_TRY(max, count_at(json["max"], path + ".max"));
    out.max_ = max;
    out.min_ = 0;
  }
  if (json.contains("min")) {
    VALORA_TRY(min, count_at(json["min"], path + ".min"));
    out.min_ = min;
  }
  if (out.min_ > out.max_) return wrong(path, "has a \"min\" above its \"max\"");
  if (json.contains("zone")) {
    VALORA_TRY(zone, parse_zone(json["zone"], path + ".zone"));
    out.zone_ = std::move(zone);
  }
  if (json.contains("min_confidence")) {
    VALORA_TRY(least, share_at(json["min_confidence"], path + ".min_confidence"));
    out.least_ = least;
  }
  return {};
}

Result<Condition> Condition::parse_at(const Json& json, const std::string& path, int depth) {
  static constexpr std::array<std::pair<const char*, Kind>, 7> kKinds{
      {{"label", Kind::kLabel},
       {"contains", Kind::kContains},
       {"boxes", Kind::kBoxes},
       {"changes", Kind::kChanges},
       {"not", Kind::kNot},
       {"all", Kind::kAll},
       {"any", Kind::kAny}}};
  if (depth >= kMaxDepth) return wrong(path, fmt::format("has more than {} levels", kMaxDepth));
  const auto found = std::ranges::find_if(
      kKinds, [&](const auto& kind) { return json.is_object() && json.contains(kind.first); });
  if (found == kKinds.end())
    return wrong(path, "must be an object with label, contains, boxes, changes, not, all or any");
  const auto [key, kind] = *found;
  const Json& value = json[key];
  const std::string at = path + "." + key;
  Condition out;
  out.kind_ = kind;
  if (kind == Kind::kLabel) {
    VALORA_CHECK(check_keys(json, path, {"label", "min_score"}));
    VALORA_TRY(labels, labels_at(value, at));
    out.labels_ = std::move(labels);
    if (json.contains("min_score")) {
      VALORA_TRY(least, share_at(json["min_score"], path + ".min_score"));
      out.least_ = least;
    }
    return out;
  }
  VALORA_CHECK(check_keys(json, path, {key}));
  if (kind == Kind::kContains) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      return wrong(at, "must be a text");
    out.text_ = lower_case(value.get<std::string>());
  } else if (kind == Kind::kBoxes) {
    VALORA_CHECK(parse_boxes(value, at, out));
  } else if (kind == Kind::kChanges) {
    if (!value.is_boolean() || !value.get<bool>()) return wrong(at, "must be true");
  } else if (kind == Kind::kNot) {
    VALORA_TRY(part, parse_at(value, at, depth + 1));
    out.parts_.push_back(std::move(part));
  } else {
    if (!value.is_array() || value.empty() || value.size() > kMaxParts)
      return wrong(at, fmt::format("must be a list of 1 to {} conditions", kMaxParts));
    for (size_t i = 0; i < value.size(); ++i) {
      VALORA_TRY(part, parse_at(value[i], fmt::format("{}[{}]", at, i), depth + 1));
      out.parts_.push_back(std::move(part));
    }
  }
  return out;
}

bool Condition::has_label(const std::string& label) const {
  return labels_.empty() || std::ranges::find(labels_, label) != labels_.end();
}

// By the even-odd rule.
bool Condition::inside(const std::vector<Point>& zone, double x, double y) {
  bool in = false;
  for (size_t i = 0, k = zone.size() - 1; i < zone.size(); k = i++) {
    const Point &a = zone[i], &b = zone[k];
    if ((a.y > y) != (b.y > y) && x < (b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x) in = !in;
  }
  return in;
}

bool Condition::counts(const AnswerBox& box) const {
  if (!has_label(box.label) || box.confidence.value_or(1) < least_) return false;
  return zone_.empty() || inside(zone_, (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2);
}

bool Condition::holds(const SkillAnswer& answer, const SkillAnswer* before) const {
  const auto part_holds = [&](const Condition& part) { return part.holds(answer, before); };
  switch (kind_) {
    case Kind::kLabel: return has_label(answer.text) && answer.score.value_or(1) >= least_;
    case Kind::kContains: return lower_case(answer.text).find(text_) != std::string::npos;
    case Kind::kBoxes: {
      const int64_t count =
          std::ranges::count_if(answer.boxes, [&](const AnswerBox& box) { return counts(box); });
      return count >= min_ && count <= max_;
    }
    case Kind::kChanges: return before != nullptr && before->text != answer.text;
    case Kind::kNot: return !part_holds(parts_.front());
    case Kind::kAll: return std::ranges::all_of(parts_, part_holds);
    case Kind::kAny: return std::ranges::any_of(parts_, part_holds);
  }
  return false;
}

Edge EventMachine::step(bool holds) {
  run_ = holds == active_ ? 0 : run_ + 1;
  if (run_ < (active_ ? end_after_ : start_after_)) return Edge::kNone;
  run_ = 0;
  active_ = !active_;
  return active_ ? Edge::kStart : Edge::kEnd;
}

}  // namespace valora::streams
