// A running stream: frames come from a camera or from its client, standing skills are asked about
// them, and answers and events go to its log and its webhook. It asks as a client would: the engine
// knows no streams. At most one question is under way, about the newest frames; older ones are
// dropped and counted. With StreamSpec::still, frames in which nothing has changed are not asked
// about.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "media/video/live_video.h"
#include "streams/event_log.h"
#include "streams/frame_window.h"
#include "streams/skill_answers.h"
#include "streams/skill_turns.h"
#include "streams/still_blocks.h"
#include "streams/stream_output.h"
#include "streams/stream_spec.h"
#include "streams/webhook_sender.h"

namespace valora::streams {

struct ChatAnswer {
  int status = 0;
  std::string body;
};
// Asks a chat (JSON) in the owner's name. Calls `done` once, on any thread. The result cancels it:
// `done` is then called soon, with status 0.
using AskChat = std::function<std::function<void()>(const std::string& owner, std::string body,
                                                    std::function<void(ChatAnswer)> done)>;

enum class StreamState { kWaiting, kRunning, kPaused, kEnded, kFailed };
inline constexpr StreamState kStreamStates[] = {StreamState::kWaiting, StreamState::kRunning,
                                                StreamState::kPaused, StreamState::kEnded,
                                                StreamState::kFailed};
const char* state_name(StreamState state);

struct StreamCounts {
  FrameCounts frames;
  int64_t answered = 0;    // frames that skills were asked about
  int64_t skipped = 0;     // frames at which no skill was due
  int64_t still = 0;       // frames at which the answers of all skills that were due stood
  int64_t failed = 0;      // frames whose question failed as a whole
  BlockCounts blocks;      // of all frames, if some may stand
  int64_t events = 0;      // begun
  int64_t reconnects = 0;  // of the camera
  double lag = 0;          // of the last answer: seconds from its frame to the answer
};

double now_in_unix_time();  // seconds

struct StreamParts {
  AskChat ask;
  media::FetchPolicy policy;  // of the source and the webhook
  std::shared_ptr<const media::HardwareDevice> video_decoder = nullptr;  // null: software
  media::Limits limits;                                                  // of frames
  bool videos = false;  // the model takes several frames as a video
  const Clock* clock = &real_clock();
  std::function<double()> unix_time = now_in_unix_time;  // shown, never counted with
  StreamOutput* output = nullptr;                        // outlives the streams; null: none
};

class Stream {
 public:
  static constexpr size_t kKeptEvents = 1000, kKeptFrames = 32;

  // Paused.
  Stream(std::string id, std::string owner, StreamSpec spec, StreamParts parts);
  ~Stream();  // stop()
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& id() const { return id_; }
  const std::string& owner() const { return owner_; }
  const StreamSpec& spec() const { return spec_; }

  // Begins, or goes on after pause(). A camera is connected to anew.
  void start();
  // Ends the question under way and leaves the camera.
  void pause();
  bool paused() const;
  // Stops for good and closes the log.
  void end();

  // A frame of a pushed stream: an encoded picture. kConflict if the stream is not pushed, or is
  // paused. kInvalidArgument for something else than a picture.
  Result<int64_t> push(std::string bytes);

  StreamState state() const;
  std::string reason() const;  // of kWaiting and kFailed; without passwords
  StreamCounts counts() const;
  EventLog& events() { return events_; }
  // A frame that events name, or the newest one (0); null: forgotten.
  FramePtr frame(int64_t id) const;

 private:
  struct Standing {
    EventMachine machine;
    std::optional<SkillResult> last;  // never a failed one
  };

  void stop();
  void ask_loop(const std::stop_token& stop);
  void camera_loop(const std::stop_token& stop);
  Result<bool> read_camera(const std::stop_token& stop);
  void ask_about(const std::vector<FramePtr>& window, const std::stop_token& stop);
  LookPtr look_at(const Frame& frame) const;
  std::optional<ChatAnswer> ask(std::string body, const std::stop_token& stop);
  void take(const FramePtr& asked, const std::vector<size_t>& skills, const LookPtr& look,
            const ChatAnswer& answer);
  void step_event(size_t skill, const SkillResult& result, const FramePtr& frame,
                  std::vector<EventDraft>& told);
  OrderedJson media_parts(const std::vector<FramePtr>& window) const;
  void tell(const std::vector<EventDraft>& drafts, int64_t StreamCounts::* counter = nullptr);
  void set_state(StreamState state, const std::string& reason, bool as_event = true);
  void keep(const FramePtr& frame);
  void count(const BlockCounts& blocks);
  double steady_time() const { return seconds(parts_.clock->now().time_since_epoch()); }

  const std::string id_, owner_;
  const StreamSpec spec_;
  const StreamParts parts_;
  FrameWindow window_;
  EventLog events_{kKeptEvents};
  std::unique_ptr<WebhookSender> webhook_;  // null: none
  std::vector<Standing> standing_;          // by skill; of the asking thread
  SkillTurns turns_;                        // of the asking thread
  std::atomic<int64_t> run_{0};             // Frame::run of the next frames
  mutable std::mutex mutex_;
  StreamState state_ = StreamState::kPaused;
  std::string reason_;
  StreamCounts counts_;
  std::map<int64_t, FramePtr> kept_;  // of events
  FramePtr newest_;
  std::mutex control_;  // of start(), pause() and stop()
  std::optional<std::jthread> asker_, camera_;
};

}  // namespace valora::streams
