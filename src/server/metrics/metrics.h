// Prometheus metrics of one server, under vLLM's names. The Gateway API Inference Extension reads
// these names too.
#pragma once

#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <string>

#include "api/engine.h"
#include "server/metrics/adapter_activity.h"
#include "server/metrics/engine_collector.h"

namespace valora::server {

// Thread-safe. The request handlers call the methods below; text() reads the engine's own counters
// at each scrape.
class Metrics final : public StepObserver {
 public:
  Metrics(const Engine& engine, std::string model_name, int max_loras);

  void prompt_tokens(int tokens);
  void generation_tokens(int tokens);
  void time_to_first_token(double seconds);
  void inter_token_latency(double seconds);
  void request_finished(const FinalInfo& info);
  // one of the n sequences ended; kAbort: it was cancelled
  void choice_finished(FinishReason reason);

  void on_step(int tokens, int sequences, double seconds) override;

  std::string text() const;  // Prometheus text exposition format

  // the names of adapters that requests use, for vllm:lora_requests_info
  const std::shared_ptr<AdapterActivity> adapter_activity = std::make_shared<AdapterActivity>();

 private:
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const prometheus::Histogram::BucketBoundaries& buckets);
  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               const prometheus::Labels& more = {});

  prometheus::Labels labels_;
  prometheus::Registry registry_;
  EngineCollector collector_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generation_tokens_;
  std::map<FinishReason, prometheus::Counter*> success_;
  prometheus::Histogram& ttft_;
  prometheus::Histogram& inter_token_;
  prometheus::Histogram& per_output_token_;
  prometheus::Histogram& e2e_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& decode_;
  prometheus::Histogram& inference_;
  prometheus::Histogram& request_prompt_tokens_;
  prometheus::Histogram& request_generation_tokens_;
  prometheus::Histogram& iteration_tokens_;
};

}  // namespace valora::server
