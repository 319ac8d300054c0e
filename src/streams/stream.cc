#include "streams/stream.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "base/text/base64.h"
#include "media/image/encode_jpeg.h"
#include "streams/sleep.h"

namespace valora::streams {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds kTurn = 500ms;                             // a stop comes at once
constexpr milliseconds kPatience = 10s;                           // with a silent camera
constexpr milliseconds kFirstPause = 500ms, kLongestPause = 30s;  // before a camera is tried again
constexpr int kJpegQuality = 92;
constexpr double kEarly = 0.02;  // seconds that a frame may come before its time

std::span<const uint8_t> as_span(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

std::string data_url(const Frame& frame) {
  return "data:" + frame.type + ";base64," + encode_base64(frame.bytes);
}

OrderedJson picture_part(const Frame& frame) {
  return {{"type", "image_url"}, {"image_url", {{"url", data_url(frame)}}}};
}

}  // namespace

double now_in_unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const char* state_name(StreamState state) {
  switch (state) {
    case StreamState::kWaiting: return "waiting";
    case StreamState::kRunning: return "running";
    case StreamState::kPaused: return "paused";
    case StreamState::kEnded: return "ended";
    case StreamState::kFailed: return "failed";
  }
  return "";
}

Stream::Stream(std::string id, std::string owner, StreamSpec spec, StreamParts parts)
    : id_(std::move(id)),
      owner_(std::move(owner)),
      spec_(std::move(spec)),
      parts_(std::move(parts)),
      window_(spec_.window),
      turns_(spec_.skills, spec_.still) {
  for (const StandingSkill& skill : spec_.skills)
    standing_.push_back({EventMachine(skill.start_after, skill.end_after), {}});
  if (spec_.webhook) webhook_ = std::make_unique<WebhookSender>(*spec_.webhook, parts_.policy);
}

Stream::~Stream() { stop(); }

void Stream::start() {
  const std::lock_guard lock(control_);
  if (asker_) return;
  ++run_;
  set_state(StreamState::kWaiting, spec_.pushed() ? "no frame has come" : "connecting", false);
  asker_.emplace([this](const std::stop_token& token) { ask_loop(token); });
  if (!spec_.pushed())
    camera_.emplace([this](const std::stop_token& token) { camera_loop(token); });
}

void Stream::stop() {
  const std::lock_guard lock(control_);
  for (auto* thread : {&camera_, &asker_})
    if (*thread) (*thread)->request_stop();
  camera_.reset();  // joins
  asker_.reset();
}

void Stream::pause() {
  stop();
  set_state(StreamState::kPaused, "");
}

void Stream::end() {
  stop();
  events_.close();
}

bool Stream::paused() const { return state() == StreamState::kPaused; }

Result<int64_t> Stream::push(std::string bytes) {
  if (!spec_.pushed())
    return Error{ErrorCode::kConflict, "the stream reads its source; frames cannot be pushed", {}};
  if (paused()) return Error{ErrorCode::kConflict, "the stream is paused", {}};
  VALORA_TRY(size, media::image_size(as_span(bytes), parts_.limits));
  Frame frame{.time = parts_.unix_time(),
              .came = steady_time(),
              .width = size.width,
              .height = size.height,
              .run = run_};
  frame.clock = frame.came;
  frame.type = media::image_type(as_span(bytes));
  frame.bytes = std::move(bytes);
  // Before the frame, whose answer may come at once.
  if (state() == StreamState::kWaiting) set_state(StreamState::kRunning, "");
  return window_.push(std::move(frame))->id;
}

void Stream::set_state(StreamState state, const std::string& reason, bool as_event) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == state && reason_ == reason) return;
    state_ = state;
    reason_ = reason;
  }
  if (parts_.output) parts_.output->changed(*this);
  if (!as_event) return;
  OrderedJson fields{{"stream", id_}, {"time", parts_.unix_time()}, {"state", state_name(state)}};
  if (!reason.empty()) fields["reason"] = reason;
  tell({EventDraft{"state", std::move(fields)}});
}

StreamState Stream::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string Stream::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

StreamCounts Stream::counts() const {
  const std::lock_guard lock(mutex_);
  StreamCounts counts = counts_;
  counts.frames = window_.counts();
  return counts;
}

FramePtr Stream::frame(int64_t id) const {
  const std::lock_guard lock(mutex_);
  if (id == 0) return newest_;
  if (newest_ && newest_->id == id) return newest_;
  const auto found = kept_.find(id);
  return found == kept_.end() ? nullptr : found->second;
}

void Stream::keep(const FramePtr& frame) {
  const std::lock_guard lock(mutex_);
  kept_[frame->id] = frame;
  if (kept_.size() > kKeptFrames) kept_.erase(kept_.begin());
}

// A frame's events and its count appear at once: whoever saw one finds the others.
void Stream::tell(const std::vector<EventDraft>& drafts, int64_t StreamCounts::* counter) {
  std::vector<EventPtr> added;
  {
    const std::lock_guard lock(mutex_);
    added = events_.add(drafts);
    counts_.events += std::ranges::count(drafts, "start", &EventDraft::type);
    if (counter) ++(counts_.*counter);
  }
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (webhook_ && (drafts[i].type != "answers" || spec_.webhook->answers))
      webhook_->send(added[i]->json);
    if (parts_.output) parts_.output->told(*this, *added[i], drafts[i].fields);
  }
}

void Stream::count(const BlockCounts& blocks) {
  const std::lock_guard lock(mutex_);
  counts_.blocks.all += blocks.all;
  counts_.blocks.still += blocks.still;
}

// ---- the camera ----

// Reads frames, at most `fps` per second, until the source ends or fails. True at the end of a
// file.
Result<bool> Stream::read_camera(const std::stop_token& stop) {
  VALORA_TRY(video, media::LiveVideo::open(spec_.source, parts_.policy, parts_.limits,
                                           {.patience = kPatience,
                                            .key_frames_only = spec_.key_frames,
                                            .device = parts_.video_decoder},
                                           stop));
  const bool is_file = spec_.source.starts_with("file:");
  const double begun = steady_time(), period = 1 / spec_.fps;
  double next = 0;  // in the time that frames are chosen by
  std::optional<StillBlocks> blocks;
  if (spec_.still_blocks) blocks.emplace(*spec_.still_blocks);
  while (true) {
    VALORA_TRY(more, video->next());
    if (!more) return true;
    if (is_file && spec_.realtime) {
      const double early = video->time() - (steady_time() - begun);
      if (early > 0) sleep_for(milliseconds(static_cast<int64_t>(early * 1000)), stop);
    }
    const double now = is_file ? video->time() : steady_time() - begun;
    if (now + kEarly < next) continue;
    next = std::max(next + period, now);
    VALORA_TRY(image, video->image());
    Frame frame{.time = parts_.unix_time(),
                .came = steady_time(),
                .type = "image/jpeg",
                .width = image.width,
                .height = image.height,
                .run = run_};
    frame.clock = spec_.realtime ? frame.came : video->time();
    if (blocks) count(blocks->apply(image, frame.clock));
    if (spec_.still) frame.luma = std::make_shared<LumaGrid>(luma_grid(image));
    VALORA_TRY(bytes, media::encode_jpeg(image, kJpegQuality));
    frame.bytes = std::move(bytes);
    window_.push(std::move(frame), !spec_.realtime, stop);
    if (stop.stop_requested()) return false;
    set_state(StreamState::kRunning, "");
  }
}

void Stream::camera_loop(const std::stop_token& stop) {
  milliseconds pause = kFirstPause;
  while (!stop.stop_requested()) {
    const int64_t before = window_.counts().came;
    ++run_;
    const auto ended = read_camera(stop);
    if (stop.stop_requested()) return;
    if (ended.ok() && spec_.source.starts_with("file:")) {
      window_.end();
      return;
    }
    const std::string why = ended.ok() ? "the source ended" : ended.error().message;
    if (!ended.ok() && ended.error().code != ErrorCode::kUnavailable) {
      set_state(StreamState::kFailed, why);
      window_.end();
      return;
    }
    if (window_.counts().came > before) pause = kFirstPause;
    set_state(StreamState::kWaiting, why);
    {
      const std::lock_guard lock(mutex_);
      ++counts_.reconnects;
    }
    sleep_for(pause, stop);
    pause = std::min(pause * 2, kLongestPause);
  }
}

// ---- the questions ----

// Several frames are a video if the model takes one.
OrderedJson Stream::media_parts(const std::vector<FramePtr>& window) const {
  OrderedJson parts = OrderedJson::array();
  const bool jpeg = std::ranges::all_of(
      window, [](const FramePtr& frame) { return frame->type == "image/jpeg"; });
  if (window.size() == 1 || !parts_.videos || spec_.window.as_pictures || !jpeg) {
    for (const FramePtr& frame : window) parts.push_back(picture_part(*frame));
    return parts;
  }
  std::string url = "data:video/jpeg;base64,";
  for (const FramePtr& frame : window) {
    if (frame != window.front()) url += ',';
    url += encode_base64(frame->bytes);
  }
  parts.push_back({{"type", "video_url"}, {"video_url", {{"url", std::move(url)}}}});
  return parts;
}

std::optional<ChatAnswer> Stream::ask(std::string body, const std::stop_token& stop) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::optional<ChatAnswer> answer;
  };
  const auto waiting = std::make_shared<Waiting>();
  const auto cancel = parts_.ask(owner_, std::move(body), [waiting](ChatAnswer answer) {
    const std::lock_guard lock(waiting->mutex);
    waiting->answer = std::move(answer);
    waiting->changed.notify_all();
  });
  std::unique_lock lock(waiting->mutex);
  if (!waiting->changed.wait(lock, stop, [&] { return waiting->answer.has_value(); })) {
    lock.unlock();
    cancel();
    return std::nullopt;
  }
  return std::move(waiting->answer);
}

void Stream::ask_loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::vector<FramePtr> window = window_.take(kTurn, stop);
    if (window.empty()) {
      if (!window_.ended()) continue;
      if (state() != StreamState::kFailed) set_state(StreamState::kEnded, "the file ended");
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      newest_ = window.back();
    }
    ask_about(window, stop);
  }
}

// Null if frames are not compared, or if it cannot be decoded: the chat says why.
LookPtr Stream::look_at(const Frame& frame) const try {
  if (!spec_.still) return nullptr;
  Look look{.width = frame.width, .height = frame.height, .run = frame.run, .time = frame.clock};
  if (frame.luma) {
    look.grid = *frame.luma;
  } else {
    const auto image = media::decode_image(as_span(frame.bytes), parts_.limits);
    if (!image.ok()) return nullptr;
    look.grid = luma_grid(*image);
  }
  return std::make_shared<const Look>(std::move(look));
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Asks the skills that are due. Those whose answers stand count as answered: their events go on.
void Stream::ask_about(const std::vector<FramePtr>& window, const std::stop_token& stop) {
  const FramePtr& frame = window.back();
  std::vector<size_t> skills = turns_.due(frame->clock, frame->run);
  if (skills.empty()) return tell({}, &StreamCounts::skipped);
  const LookPtr look = look_at(*frame);
  std::vector<EventDraft> told;
  std::erase_if(skills, [&](size_t skill) {
    const bool still = turns_.is_still(skill, look);
    if (still) step_event(skill, *standing_[skill].last, frame, told);
    return still;
  });
  tell(told, skills.empty() ? &StreamCounts::still : nullptr);
  if (skills.empty()) return;
  const auto answer = ask(chat_text(spec_, skills, media_parts(window)), stop);
  if (answer) take(frame, skills, look, *answer);
}

void Stream::take(const FramePtr& asked, const std::vector<size_t>& skills, const LookPtr& look,
                  const ChatAnswer& answer) {
  const Frame& frame = *asked;
  const double lag = steady_time() - frame.came;
  std::vector<EventDraft> told{{"answers",
                                {{"stream", id_},
                                 {"time", parts_.unix_time()},
                                 {"frame", frame.id},
                                 {"frame_time", frame.time},
                                 {"lag", lag}}}};
  OrderedJson& fields = told.front().fields;
  auto results = answer.status == 200
                     ? read_skill_answers(answer.body, frame.width, frame.height)
                     : Result<std::map<std::string, SkillResult>>(internal("no answer"));
  {
    const std::lock_guard lock(mutex_);
    counts_.lag = lag;
  }
  if (!results.ok()) {
    for (const size_t i : skills) turns_.asked(i, look, true);
    const auto error = parse_json(answer.body, "an answer");
    const bool has_error = error.ok() && error->is_object() && error->contains("error");
    fields["error"] = has_error ? OrderedJson::parse((*error)["error"].dump())
                                : OrderedJson{{"message", "the answer was lost"}};
    return tell(told, &StreamCounts::failed);
  }
  OrderedJson& shown = fields["answers"] = OrderedJson::object();
  for (auto& [name, result] : *results) shown[name] = result.shown;
  for (const size_t i : skills) {
    const auto found = results->find(spec_.skills[i].name);
    const bool failed = found == results->end() || found->second.failed;
    turns_.asked(i, look, failed);
    if (failed) continue;
    step_event(i, found->second, asked, told);
    standing_[i].last = std::move(found->second);
  }
  tell(told, &StreamCounts::answered);
}

// Adds the skill's event to `told` if it begins or ends.
void Stream::step_event(size_t skill, const SkillResult& result, const FramePtr& frame,
                        std::vector<EventDraft>& told) {
  const StandingSkill& asked = spec_.skills[skill];
  Standing& standing = standing_[skill];
  if (!asked.when) return;
  const SkillAnswer* before = standing.last ? &standing.last->answer : nullptr;
  const Edge edge = standing.machine.step(asked.when->holds(result.answer, before));
  if (edge == Edge::kNone) return;
  keep(frame);
  told.push_back({edge == Edge::kStart ? "start" : "end",
                  {{"stream", id_},
                   {"time", parts_.unix_time()},
                   {"skill", asked.name},
                   {"frame", frame->id},
                   {"frame_time", frame->time},
                   {"frame_url", fmt::format("/v1/streams/{}/frames/{}", id_, frame->id)},
                   {"answer", result.shown}}});
}

}  // namespace valora::streams
