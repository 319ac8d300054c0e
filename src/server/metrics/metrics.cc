#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/text_serializer.h>

#include <sstream>

#include "server/openai/responses.h"

namespace valora::server {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kFirstToken = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                             1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const Buckets kPerToken = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                           .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const Buckets kRequest = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                          30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const Buckets kSequences = {1, 2, 5, 10, 20};
const Buckets kPreemptions = {0, 1, 2, 5, 10, 20, 50};
const Buckets kIteration = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

// 1, 2, 5, 10, 20, 50, … up to `limit`.
Buckets one_two_five(double limit) {
  Buckets buckets = {1};
  for (double decade = 1;; decade *= 10)
    for (const double mantissa : {1, 2, 5}) {
      const double bound = mantissa * decade;
      if (bound > limit) return buckets;
      if (bound > 1) buckets.push_back(bound);
    }
}

std::string serialized(const std::vector<prometheus::MetricFamily>& families) {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace

prometheus::Histogram& Metrics::histogram(const std::string& name, const std::string& help,
                                          const Buckets& buckets) {
  return prometheus::BuildHistogram()
      .Name(name.find(':') == name.npos ? "vllm:" + name : name)
      .Help(help)
      .Register(registry_)
      .Add(labels_, buckets);
}

prometheus::Counter& Metrics::counter(const std::string& name, const std::string& help,
                                      const prometheus::Labels& more) {
  prometheus::Labels labels = labels_;
  labels.insert(more.begin(), more.end());
  return prometheus::BuildCounter().Name("vllm:" + name).Help(help).Register(registry_).Add(labels);
}

Metrics::Metrics(const Engine& engine, std::string model_name, int max_loras)
    : labels_{{"model_name", std::move(model_name)}, {"engine", "0"}},
      registry_(prometheus::Registry::InsertBehavior::Merge),
      collector_(engine, *adapter_activity, adapter_counts, labels_, max_loras),
      prompt_tokens_(counter("prompt_tokens_total", "Prompt tokens of scheduled requests.")),
      generation_tokens_(counter("generation_tokens_total", "Generated tokens.")),
      ttft_(histogram("time_to_first_token_seconds", "Arrival to first token.", kFirstToken)),
      inter_token_(histogram("inter_token_latency_seconds",
                             "Time between two tokens of a sequence.", kPerToken)),
      per_output_token_(histogram("request_time_per_output_token_seconds",
                                  "A request's mean time per token after the first.", kPerToken)),
      e2e_(histogram("e2e_request_latency_seconds", "Arrival to last token.", kRequest)),
      queue_(histogram("request_queue_time_seconds", "Arrival to first scheduled.", kRequest)),
      adapter_wait_(histogram("valora:request_adapter_wait_seconds",
                              "Part of the queue time in which an adapter was on its way.",
                              kFirstToken)),
      kv_wait_(histogram("valora:request_kv_wait_seconds",
                         "Part of the queue time in which KV was on its way from the swap space.",
                         kFirstToken)),
      prefill_(
          histogram("request_prefill_time_seconds", "First scheduled to first token.", kRequest)),
      decode_(histogram("request_decode_time_seconds", "First to last token.", kRequest)),
      inference_(
          histogram("request_inference_time_seconds", "First scheduled to last token.", kRequest)),
      request_prompt_tokens_(histogram("request_prompt_tokens", "Prompt tokens per request.",
                                       one_two_five(engine.model().max_model_len))),
      request_generation_tokens_(histogram("request_generation_tokens",
                                           "Generated tokens per request.",
                                           one_two_five(engine.model().max_model_len))),
      iteration_tokens_(histogram("iteration_tokens_total", "Tokens per engine step.", kIteration)),
      params_n_(histogram("request_params_n", "Sequences that a request asked for.", kSequences)),
      params_max_tokens_(histogram("request_params_max_tokens",
                                   "Highest number of generated tokens that a request asked for.",
                                   one_two_five(engine.model().max_model_len))),
      preemptions_(histogram("request_num_preemptions", "Preemptions per request.", kPreemptions)),
      max_generation_tokens_(histogram("request_max_num_generation_tokens",
                                       "Generated tokens of a request's longest sequence.",
                                       one_two_five(engine.model().max_model_len))),
      prefill_computed_tokens_(histogram("request_prefill_kv_computed_tokens",
                                         "Prompt tokens per request that no cache had.",
                                         one_two_five(engine.model().max_model_len))),
      cached_tokens_(counter("prompt_tokens_cached_total", "Prompt tokens found in a cache.")),
      computed_source_(by_source("local_compute")),
      cached_source_(by_source("local_cache_hit")),
      http_(registry_) {
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kAbort})
    success_[reason] = &counter("request_success_total", "Ended requests.",
                                {{"finished_reason", finish_reason_name(reason)}});
}

prometheus::Counter& Metrics::by_source(const char* source) {
  return counter("prompt_tokens_by_source_total", "Prompt tokens by where their KV came from.",
                 {{"source", source}});
}

void Metrics::prompt_scheduled(const Usage& usage) {
  prompt_tokens_.Increment(usage.prompt_tokens);
  cached_tokens_.Increment(usage.cached_tokens);
  cached_source_.Increment(usage.cached_tokens);
  computed_source_.Increment(usage.prompt_tokens - usage.cached_tokens);
}

void Metrics::generation_tokens(int tokens) { generation_tokens_.Increment(tokens); }
void Metrics::time_to_first_token(double seconds) { ttft_.Observe(seconds); }
void Metrics::inter_token_latency(double seconds) { inter_token_.Observe(seconds); }
void Metrics::choice_finished(FinishReason reason) { success_.at(reason)->Increment(); }
Metrics::TokenTotals Metrics::token_totals() const {
  return {static_cast<uint64_t>(prompt_tokens_.Value()),
          static_cast<uint64_t>(generation_tokens_.Value())};
}

void Metrics::on_step(const StepRecord& step) {
  steps.add(step);
  iteration_tokens_.Observe(step.tokens + first_tokens_.exchange(0));
}

void Metrics::request_finished(const FinalInfo& info, const RequestShape& shape) {
  params_n_.Observe(shape.n);
  if (shape.max_tokens) params_max_tokens_.Observe(*shape.max_tokens);
  preemptions_.Observe(info.preemptions);
  max_generation_tokens_.Observe(shape.longest);
  prefill_computed_tokens_.Observe(info.usage.prompt_tokens - info.usage.cached_tokens);
  const RequestTimings& timings = info.timings;
  e2e_.Observe(timings.e2e_seconds);
  queue_.Observe(timings.queue_seconds);
  adapter_wait_.Observe(timings.adapter_seconds);
  kv_wait_.Observe(timings.kv_seconds);
  prefill_.Observe(timings.prefill_seconds);
  decode_.Observe(timings.decode_seconds);
  inference_.Observe(timings.prefill_seconds + timings.decode_seconds);
  request_prompt_tokens_.Observe(info.usage.prompt_tokens);
  request_generation_tokens_.Observe(info.usage.completion_tokens);
  if (info.usage.completion_tokens > 1)
    per_output_token_.Observe(timings.decode_seconds / (info.usage.completion_tokens - 1));
}

std::vector<prometheus::MetricFamily> Metrics::families() const {
  std::vector<prometheus::MetricFamily> families = collector_.Collect();
  for (auto& family : process_.Collect()) families.push_back(std::move(family));
  for (auto& family : registry_.Collect()) families.push_back(std::move(family));
  for (auto& family : http_.sizes()) families.push_back(std::move(family));
  for (const auto& more : more_)
    for (auto& family : more->Collect()) families.push_back(std::move(family));
  return families;
}

std::string Metrics::text() const { return serialized(families()); }

std::string Metrics::text(const VisibleNames& names) const {
  std::vector<prometheus::MetricFamily> visible = families();
  hide_names(names, visible);
  return serialized(visible);
}

}  // namespace valora::server
