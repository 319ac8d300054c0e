#include "server/metrics/memory_metrics.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "server/metrics/labelled.h"

namespace valora::server {
namespace {

using prometheus::ClientMetric;
using prometheus::Labels;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct LabelledValue {
  Labels more;
  double value = 0;
};

class Families {
 public:
  Families(const Labels& labels, std::vector<MetricFamily>& out) : labels_(labels), out_(out) {}

  void add(const char* name, const char* help, MetricType type,
           std::initializer_list<LabelledValue> samples) {
    MetricFamily family{name, help, type, {}};
    for (const LabelledValue& sample : samples) {
      ClientMetric metric = labelled(labels_, sample.more);
      (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = sample.value;
      family.metric.push_back(std::move(metric));
    }
    out_.push_back(std::move(family));
  }

 private:
  const Labels& labels_;
  std::vector<MetricFamily>& out_;
};

void add_moves(const MemoryStats& m, Families& families) {
  const Labels load{{"move", "load_adapter"}}, read{{"move", "read_kv"}},
      write{{"move", "write_kv"}};
  const auto value = [](auto number) { return static_cast<double>(number); };
  families.add(
      "valora:memory_moves_total",
      "Copies between memory tiers: adapters from files, KV from and to the swap space.",
      MetricType::Counter,
      {{load, value(m.loads.moves)}, {read, value(m.reads.moves)}, {write, value(m.writes.moves)}});
  families.add("valora:memory_moves_failed_total",
               "Copies that failed; read_kv also counts blocks that are damaged in the swap space. "
               "Their KV is computed again.",
               MetricType::Counter,
               {{load, value(m.loads.failed)},
                {read, value(m.reads.failed)},
                {write, value(m.writes.failed)}});
  families.add(
      "valora:memory_moved_bytes_total", "Bytes of the copies.", MetricType::Counter,
      {{load, value(m.loads.bytes)}, {read, value(m.reads.bytes)}, {write, value(m.writes.bytes)}});
  families.add("valora:memory_move_seconds_total", "Time of the copies.", MetricType::Counter,
               {{load, m.loads.seconds}, {read, m.reads.seconds}, {write, m.writes.seconds}});
}

}  // namespace

void add_memory_metrics(const MemoryStats& m, const Labels& labels,
                        std::vector<MetricFamily>& out) {
  Families families(labels, out);
  const auto use = [](const char* kind) { return Labels{{"use", kind}}; };
  families.add(
      "valora:pool_blocks",
      "Blocks of the pool by use: adapters, KV of requests, KV that no request uses, free.",
      MetricType::Gauge,
      {{use("adapters"), double(m.adapter_blocks)},
       {use("running"), double(m.running_blocks)},
       {use("history"), double(m.history_blocks)},
       {use("free"), double(m.free)}});
  families.add("valora:pool_block_bytes", "Bytes of a block of the pool.", MetricType::Gauge,
               {{{}, static_cast<double>(m.block_bytes)}});
  families.add("valora:pool_invalid_blocks", "KV blocks whose adapter is not in the pool.",
               MetricType::Gauge, {{{}, double(m.invalid_blocks)}});
  families.add(
      "valora:swap_blocks", "KV blocks of the swap space by use.", MetricType::Gauge,
      {{use("used"), double(m.swap_used)}, {use("free"), double(m.swap_total - m.swap_used)}});
  families.add("valora:resident_adapters", "Adapters in the pool.", MetricType::Gauge,
               {{{}, double(m.adapters)}});
  families.add("valora:head_bytes",
               "Bytes of task heads and their labels, which are outside the pool; limit: what they "
               "may have.",
               MetricType::Gauge,
               {{use("used"), static_cast<double>(m.head_bytes)},
                {use("limit"), static_cast<double>(m.head_limit)}});
  families.add("valora:adapter_queries_total", "Adapters that requests asked for.",
               MetricType::Counter, {{{}, static_cast<double>(m.adapter_queries)}});
  families.add("valora:adapter_hits_total", "Adapters that were in the pool when asked for.",
               MetricType::Counter, {{{}, static_cast<double>(m.adapter_hits)}});
  families.add("valora:swapped_tokens_total",
               "Prompt tokens whose KV came back from the swap space.", MetricType::Counter,
               {{{}, static_cast<double>(m.swapped_tokens)}});
  families.add("valora:adapters_left_total", "Adapters that left the pool.", MetricType::Counter,
               {{{}, static_cast<double>(m.adapters_left)}});
  families.add("valora:kv_blocks_dropped_total", "KV blocks that left the pool without a copy.",
               MetricType::Counter, {{{}, static_cast<double>(m.kv_dropped)}});
  add_moves(m, families);
}

}  // namespace valora::server
