// Prometheus metrics of one server, under vLLM's names. The Gateway API Inference Extension reads
// these names too.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/engine.h"
#include "server/metrics/adapter_activity.h"
#include "server/metrics/adapter_counts.h"
#include "server/metrics/application_metrics.h"
#include "server/metrics/engine_collector.h"
#include "server/metrics/http_metrics.h"
#include "server/metrics/process_collector.h"
#include "server/metrics/recent_latencies.h"
#include "server/metrics/step_ring.h"
#include "server/metrics/visible_names.h"

namespace valora::server {

// What a request asked for, and the length of its longest sequence.
struct RequestShape {
  int n = 1;
  std::optional<int> max_tokens;
  int longest = 0;  // generated tokens
};

// Thread-safe. The request handlers call the methods below; text() reads the engine's own counters
// at each scrape.
class Metrics final : public StepObserver {
 public:
  Metrics(const Engine& engine, std::string model_name, int max_loras);

  void prompt_scheduled(const Usage& usage);  // prompt and cached tokens
  void generation_tokens(int tokens);
  void time_to_first_token(double seconds);
  void inter_token_latency(double seconds);
  void request_finished(const FinalInfo& info, const RequestShape& shape);
  // Counts a sequence's first token in the step that ends next (StepObserver). The engine counts
  // the tokens that steps read; a prompt yields one more token than it has decode steps.
  void first_token() { ++first_tokens_; }
  void http_answered(std::string_view route, const HttpOutcome& outcome) {
    http_.answered(route, outcome);
  }
  // Creates the series of one application. This object must outlive them.
  ApplicationMetrics of_application(const Application& application) {
    return {registry_, labels_, application};
  }
  // one of the n sequences ended; kAbort: it was cancelled
  void choice_finished(FinishReason reason);

  void on_step(const StepRecord& step) override;

  // Of every series.
  const prometheus::Labels& labels() const { return labels_; }
  // Further metrics, read at each scrape. Called before the first one.
  void add(std::unique_ptr<const prometheus::Collectable> more) {
    more_.push_back(std::move(more));
  }

  // Prometheus text exposition format; `names`: what its reader may see.
  std::string text() const;
  std::string text(const VisibleNames& names) const;
  std::map<int, uint64_t> answers_by_status() const { return http_.by_status(); }
  struct TokenTotals {
    uint64_t prompt = 0, generated = 0;
  };
  TokenTotals token_totals() const;

  // adapter names in use, for vllm:lora_requests_info
  const std::shared_ptr<AdapterActivity> adapter_activity = std::make_shared<AdapterActivity>();
  // for /v1/stats
  StepRing steps;
  RecentLatencies latencies;
  AdapterCounts adapter_counts;

 private:
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const prometheus::Histogram::BucketBoundaries& buckets);
  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               const prometheus::Labels& more = {});

  prometheus::Counter& by_source(const char* source);
  std::vector<prometheus::MetricFamily> families() const;

  prometheus::Labels labels_;
  prometheus::Registry registry_;
  EngineCollector collector_;
  ProcessCollector process_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generation_tokens_;
  std::map<FinishReason, prometheus::Counter*> success_;
  prometheus::Histogram& ttft_;
  prometheus::Histogram& inter_token_;
  prometheus::Histogram& per_output_token_;
  prometheus::Histogram& e2e_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& adapter_wait_;
  prometheus::Histogram& kv_wait_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& decode_;
  prometheus::Histogram& inference_;
  prometheus::Histogram& request_prompt_tokens_;
  prometheus::Histogram& request_generation_tokens_;
  prometheus::Histogram& iteration_tokens_;
  prometheus::Histogram& params_n_;
  prometheus::Histogram& params_max_tokens_;
  prometheus::Histogram& preemptions_;
  prometheus::Histogram& max_generation_tokens_;
  prometheus::Histogram& prefill_computed_tokens_;
  prometheus::Counter& cached_tokens_;
  prometheus::Counter& computed_source_;
  prometheus::Counter& cached_source_;
  HttpMetrics http_;
  std::vector<std::unique_ptr<const prometheus::Collectable>> more_;
  std::atomic<int> first_tokens_{0};
};

}  // namespace valora::server
