// The engine's public interface: what the server, the command line and the benchmarks see.
// Torch-free. All calls are thread-safe and return at once; results come through sinks and
// callbacks, which run on engine threads and must neither block nor throw.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"

namespace valora {

// ---- what is asked ----

struct MediaRef {
  enum class Kind { kImage, kVideo };
  Kind kind = Kind::kImage;
  std::string url;  // data:, file:// or http(s)://; the fetch policy decides
};

using ContentPart = std::variant<std::string, MediaRef>;

struct ChatMessage {
  std::string role;
  std::vector<ContentPart> parts;
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;
  // Opens the assistant's turn; absent: true when generating, as the head was trained when
  // classifying.
  std::optional<bool> add_generation_prompt;
  Json template_variables;  // chat_template_kwargs: an object, or null
};

// Plain text, token ids, or a conversation.
using Prompt = std::variant<std::string, std::vector<int32_t>, ChatPrompt>;

// Absent values take the model's generation_config.json, then the OpenAI default.
struct SamplingParams {
  std::optional<int> max_tokens;      // absent: up to the model's length
  int min_tokens = 0;                 // no end-of-sequence or stop token before
  std::optional<double> temperature;  // 0: greedy
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0 or -1: off
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<int64_t> seed;
  int n = 1;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;
  bool skip_special_tokens = true;
  std::optional<int>
      logprobs;  // top alternatives a token, 0 … 20; the chosen one comes in any case
};

struct AdapterUse {
  std::string name;
  float scale = 1;  // multiplies the adapter's own scale
};

enum class Task { kGenerate, kClassify };

struct GenerateRequest {
  std::string id;  // the client's or the server's, for logs
  Prompt prompt;
  std::vector<AdapterUse> adapters;  // empty: the base model; several are summed
  SamplingParams sampling;
  Task task = Task::kGenerate;
  // kClassify: which of the adapter's heads (absent: its only one). kGenerate: absent lets an
  // adapter that has heads answer with its label as the text; "" asks for the language-model head
  // all the same.
  std::optional<std::string> head;
};

// ---- what is answered ----

struct TokenLogprob {
  int32_t id = 0;
  std::string bytes;  // of the token, perhaps part of a character
  float logprob = 0;
};

struct TokenOutput {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // only when asked
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int cached_tokens = 0;  // prompt tokens whose KV was found in the prefix cache
};

enum class FinishReason { kStop, kLength, kAbort };
const char* finish_reason_name(FinishReason reason);  // "stop", "length", "abort"

struct Finish {
  FinishReason reason = FinishReason::kStop;
  std::variant<std::monostate, int32_t, std::string>
      stop_reason;  // the stop token id or string that ended it
};

// New text of one of the n sequences. Text may lag behind tokens (half characters, possible stop
// strings).
struct OutputChunk {
  int index = 0;
  std::string text;
  std::vector<TokenOutput> tokens;
  std::optional<Finish> finish;  // set on the sequence's last chunk
};

struct Classification {
  std::string head;
  std::vector<std::string> labels;
  std::vector<float> logits;
  std::vector<float> probs;  // softmax, sigmoid or the raw values, by the head's problem type
  int best = 0;              // index of the label answered
};

struct RequestTimings {
  double queue_seconds = 0;    // arrival to first scheduled, media work included
  double prefill_seconds = 0;  // first scheduled to first token
  double decode_seconds = 0;   // first to last token
  double ttft_seconds = 0;     // arrival to first token
  double e2e_seconds = 0;
};

struct FinalInfo {
  Usage usage;
  RequestTimings timings;
  int preemptions = 0;
  std::vector<int32_t> prompt_token_ids;
};

// Where one request's answer goes. Exactly one of on_done and on_error ends it; nothing follows.
class ResponseSink {
 public:
  virtual ~ResponseSink() = default;
  // The request was scheduled for the first time: prompt and cached tokens are known.
  virtual void on_start(const Usage&) {}
  virtual void on_output(OutputChunk chunk) = 0;
  virtual void on_classification(Classification) {}
  virtual void on_done(const FinalInfo& info) = 0;
  virtual void on_error(const Error& error) = 0;
};

// ---- what is served ----

struct ModelCard {
  std::string name;  // as served
  std::string path;
  std::string architecture;  // "Qwen2VLForConditionalGeneration"
  std::string dtype;
  std::string device;
  int64_t parameters = 0;
  int max_model_len = 0;
  int64_t created = 0;  // unix time
  bool images = false;
  bool videos = false;
  int kv_block_tokens = 0;
  int kv_blocks = 0;
  size_t kv_bytes = 0;
  size_t weight_bytes = 0;
};

struct AdapterCard {
  std::string name;
  std::string path;
  uint64_t generation = 0;
  int rank = 0;
  size_t bytes = 0;
  bool pinned = false;
  std::string task, description, question;
  std::vector<std::pair<std::string, std::vector<std::string>>> heads;  // name, labels
  std::optional<std::string> head;                                      // LoadAdapter::head
  int64_t created = 0;
  std::vector<std::string> warnings;
};

struct LoadAdapter {
  std::string name;
  std::string path;
  // Another name for an adapter that is loaded, in the place of a path: both share its weights,
  // neither needs the other from then on. It stands for the adapter as it is now, and is not
  // changed where that name is loaded anew.
  std::string same_as;
  // What answers requests to this name that name no head: one of the adapter's heads, "" the
  // language model; absent: the only head that the adapter has, or else the language model.
  std::optional<std::string> head;
  std::string question;  // of AdapterCard; empty: the adapter's own
  bool replace = false;  // load_inplace: the name may exist; running requests keep the old content
  bool pinned = false;
  std::optional<uint64_t>
      expected_generation;  // 0: must not exist; else compare-and-swap (kConflict)
};

// A snapshot for /metrics.
struct EngineStats {
  int running = 0;
  int waiting = 0;    // in the scheduler's queue
  int preparing = 0;  // media and tokenizing
  double kv_usage = 0;
  uint64_t preemptions = 0;
  uint64_t prefix_queries = 0, prefix_hits = 0;  // in tokens
  uint64_t media_queries = 0, media_hits = 0;
  uint64_t visual_queries = 0, visual_hits = 0;  // embeddings of the vision tower
  std::vector<std::string> running_adapters, waiting_adapters;
  std::string mode = "unmerged";  // of the last step: unmerged, merged or mixture
  uint64_t mode_switches =
      0;  // changes between base weights and those with an adapter merged, or between adapters
  uint64_t merges = 0;  // of these: with an adapter that had to be merged
  double merge_seconds = 0;
  uint64_t steps = 0;
  double step_seconds = 0;      // total, of engine iterations with work
  double overhead_seconds = 0;  // of that: outside the model's forward pass and sampling
};

// Told after each step, on the engine thread.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_step(int tokens, int sequences, double seconds) = 0;
};

using RequestHandle = uint64_t;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const ModelCard& model() const = 0;

  // Validation that needs no work is done at once (kInvalidArgument, kNotFound for an adapter,
  // kQueueFull, kUnavailable while draining); later errors go to the sink.
  virtual Result<RequestHandle> submit(GenerateRequest request,
                                       std::shared_ptr<ResponseSink> sink) = 0;
  // Ends a request quietly: its sink gets nothing more. Unknown or ended handles are ignored.
  virtual void cancel(RequestHandle handle) = 0;

  virtual void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) = 0;
  virtual void unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                              std::function<void(Status)> done) = 0;
  virtual std::vector<AdapterCard> adapters() const = 0;

  virtual Result<std::vector<int32_t>> tokenize(const Prompt& prompt,
                                                bool add_special_tokens) const = 0;
  virtual Result<std::string> detokenize(const std::vector<int32_t>& ids) const = 0;

  virtual EngineStats stats() const = 0;
  virtual void set_observer(StepObserver* observer) = 0;

  // False once the engine thread has died of an internal fault.
  virtual bool healthy() const = 0;
  // No new requests; `done` is called when all running ones have ended.
  virtual void drain(std::function<void()> done) = 0;
};

}  // namespace valora
