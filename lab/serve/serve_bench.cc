#include "lab/serve/serve_bench.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "lab/serve/answer_reader.h"
#include "lab/serve/arrivals.h"
#include "lab/serve/http_client.h"
#include "lab/serve/served_models.h"
#include "lab/serve/workload.h"

namespace valora::bench {
namespace {

constexpr double kLongestPoll = 0.2;  // seconds

Status check(const ServeLoad& load) {
  const auto wrong = [](const Range& range) {
    return range.min < 1 || range.max < range.min || range.max > (1 << 20);
  };
  if (load.requests < 1 || load.requests > 1'000'000)
    return invalid("--num-prompts must be between 1 and 1000000");
  if (load.warmup < 0 || load.warmup > 100'000)
    return invalid("--warmup must be between 0 and 100000");
  if (load.concurrency < 0 || load.concurrency > 10'000)
    return invalid("--concurrency must be between 0 and 10000");
  if (!(load.request_rate >= 0 && load.request_rate <= 1e6))
    return invalid("--request-rate must be between 0 and 1000000");
  if (load.concurrency == 0 && load.request_rate == 0)
    return invalid("a closed loop needs a --concurrency of at least 1");
  if (wrong(load.input_tokens)) return invalid("--input-tokens must be N or MIN:MAX, at least 1");
  if (wrong(load.output_tokens)) return invalid("--output-tokens must be N or MIN:MAX, at least 1");
  if (load.images.count < 0 || load.images.count > 1000)
    return invalid("--images must be between 0 and 1000");
  const auto side = [](int pixels) { return pixels >= 1 && pixels <= 8192; };
  if (!side(load.images.width) || !side(load.images.height))
    return invalid("--image-size must be WxH, each from 1 to 8192");
  return {};
}

// Sends the requests and reads all answers.
class Loop {
 public:
  Loop(HttpClient& client, const ServeLoad& load, const std::vector<BenchRequest>& requests,
       std::vector<double> arrivals, const std::function<void(const Progress&)>& on_progress)
      : client_(client),
        load_(load),
        requests_(requests),
        arrivals_(std::move(arrivals)),
        on_progress_(on_progress),
        records_(requests.size()),
        begin_(clock_.now()) {}

  std::vector<RequestRecord> run() {
    readers_.reserve(requests_.size());
    while (ended_ < static_cast<int>(requests_.size())) {
      while (may_send()) send();
      client_.poll(wait_seconds());
    }
    return std::move(records_);
  }

 private:
  double now() const { return seconds(clock_.now() - begin_); }
  bool has_room() const {
    return readers_.size() < requests_.size() &&
           (load_.concurrency == 0 || client_.active() < load_.concurrency);
  }
  bool may_send() const {
    return has_room() && (arrivals_.empty() || arrivals_[readers_.size()] <= now());
  }
  double wait_seconds() const {
    return has_room() && !arrivals_.empty()
               ? std::min(kLongestPoll, arrivals_[readers_.size()] - now())
               : kLongestPoll;
  }

  void send() {
    const size_t index = readers_.size();
    const BenchRequest& request = requests_[index];
    RequestRecord& record = records_[index];
    record.model = request.model;
    record.wanted_tokens = request.output_tokens;
    AnswerReader& reader = readers_.emplace_back(record, load_.stream);
    record.sent = now();
    client_.start(
        {request.path, request.body,
         [this, &reader](std::string_view bytes, int status) { reader.feed(bytes, status, now()); },
         [this, &reader, &record](int status, const std::string& failure) {
           reader.finish(status, failure, now());
           ++ended_;
           failed_ += !record.error.empty();
           on_progress_({ended_, failed_, static_cast<int>(requests_.size()), now()});
         }});
  }

  HttpClient& client_;
  const ServeLoad& load_;
  const std::vector<BenchRequest>& requests_;
  const std::vector<double> arrivals_;  // empty: closed loop
  const std::function<void(const Progress&)>& on_progress_;
  std::vector<RequestRecord> records_;
  std::vector<AnswerReader> readers_;  // one per sent request; never reallocated, see run()
  int ended_ = 0, failed_ = 0;
  const RealClock clock_;
  const TimePoint begin_;
};

}  // namespace

Result<ServeRun> run_serve_bench(const ServeLoad& load,
                                 const std::function<void(const Progress&)>& on_progress) {
  VALORA_CHECK(check(load));
  HttpClient client(load.url, load.api_key, load.timeout_seconds);
  ServeRun run{load.models, {}};
  if (run.models.empty()) {
    VALORA_TRY(models, served_models(client));
    run.models = models.adapters.empty() ? std::vector{models.base} : std::move(models.adapters);
  }
  const int longest = load.input_tokens.max + load.output_tokens.max;
  VALORA_TRY(prompts, learn_prompts(client, run.models.front(), longest, load.seed));
  const uint64_t first_seed = load.seed << 32;
  const uint64_t warmup_seed = first_seed + (uint64_t{1} << 31);
  VALORA_TRY(warmup, make_requests(load, run.models, prompts, load.warmup, warmup_seed));
  VALORA_TRY(requests, make_requests(load, run.models, prompts, load.requests, first_seed));
  Loop(client, load, warmup, {}, [](const Progress&) {}).run();
  std::vector<double> arrivals;
  if (load.request_rate > 0)
    arrivals = poisson_arrivals(load.requests, load.request_rate, load.seed);
  run.records = Loop(client, load, requests, std::move(arrivals), on_progress).run();
  return run;
}

}  // namespace valora::bench
