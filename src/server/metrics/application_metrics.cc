#include "server/metrics/application_metrics.h"

namespace valora::server {
namespace {

using prometheus::Counter;
using prometheus::Labels;
using prometheus::Registry;

Labels with(Labels labels, const Labels& more) {
  labels.insert(more.begin(), more.end());
  return labels;
}

Counter& requests(Registry& registry, const Labels& labels, const char* outcome) {
  return prometheus::BuildCounter()
      .Name("valora:application_requests_total")
      .Help("Ended requests of an application: \"ok\", \"error\", or \"refused\" with 429.")
      .Register(registry)
      .Add(with(labels, {{"outcome", outcome}}));
}

Counter& targets(Registry& registry, const Labels& labels, const char* target, const char* met) {
  return prometheus::BuildCounter()
      .Name("valora:application_target_total")
      .Help(
          "Ended requests of an application by whether they met a latency target. Failed ones "
          "did not; refused ones are left out.")
      .Register(registry)
      .Add(with(labels, {{"target", target}, {"met", met}}));
}

}  // namespace

ApplicationMetrics::ApplicationMetrics(Registry& registry, const Labels& labels,
                                       const Application& application)
    : ok_(requests(registry, with(labels, {{"application", application.name}}), "ok")),
      error_(requests(registry, with(labels, {{"application", application.name}}), "error")),
      refused_(requests(registry, with(labels, {{"application", application.name}}), "refused")) {
  const Labels own = with(labels, {{"application", application.name}});
  const auto add = [&](std::optional<Target>& target, const char* name,
                       std::optional<double> seconds) {
    if (!seconds) return;
    target.emplace(
        Target{*seconds, targets(registry, own, name, "yes"), targets(registry, own, name, "no")});
  };
  add(ttft_, "ttft", application.ttft);
  add(tpot_, "tpot", application.tpot);
  add(e2e_, "e2e", application.e2e);
}

void ApplicationMetrics::answered(const AnswerLatency& latency) {
  ok_.Increment();
  latencies_->add(latency);
  if (ttft_) ttft_->count(latency.ttft <= ttft_->seconds);
  if (tpot_) tpot_->count(latency.tpot <= tpot_->seconds);
  if (e2e_) e2e_->count(latency.e2e <= e2e_->seconds);
}

void ApplicationMetrics::failed() {
  error_.Increment();
  for (std::optional<Target>* target : {&ttft_, &tpot_, &e2e_})
    if (*target) (*target)->count(false);
}

void ApplicationMetrics::refused() { refused_.Increment(); }

ApplicationMetrics::Ended ApplicationMetrics::ended() const {
  const auto count = [](const Counter& counter) { return static_cast<uint64_t>(counter.Value()); };
  return {count(ok_), count(error_), count(refused_)};
}

std::optional<double> ApplicationMetrics::Target::share() const {
  const double all = met.Value() + missed.Value();
  return all > 0 ? std::optional(met.Value() / all) : std::nullopt;
}

ApplicationMetrics::Attainment ApplicationMetrics::attainment() const {
  const auto share = [](const std::optional<Target>& target) {
    return target ? target->share() : std::nullopt;
  };
  return {share(ttft_), share(tpot_), share(e2e_)};
}

}  // namespace valora::server
