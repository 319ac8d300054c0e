#include "lab/ops/ops_bench.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include "kernels/cpu/isa/isa.h"
#include "lab/ops/atmm_bench.h"
#include "lab/ops/attention_bench.h"
#include "lab/ops/collective_bench.h"
#include "lab/ops/delta_bench.h"
#include "lab/ops/elementwise_bench.h"
#include "lab/ops/linear_bench.h"
#include "lab/ops/merge_bench.h"
#include "lab/ops/modes_bench.h"
#include "lab/ops/paged_adapters_bench.h"
#include "lab/ops/quantised_bench.h"

namespace valora::bench {
namespace {

constexpr double kSeconds = 0.5, kQuickSeconds = 0.15;

// Keeps freed memory in the process. Otherwise page faults would dominate the time of contenders
// with large intermediate results.
void keep_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc's maximum
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

std::vector<Shape> all_shapes(const Settings& settings) {
  std::vector<Shape> shapes;
  for (auto* list : {linear_shapes, quantised_shapes, gated_shapes, atmm_shapes, merge_shapes,
                     mode_shapes, paged_adapter_shapes, attention_shapes, delta_shapes,
                     elementwise_shapes, collective_shapes})
    for (Shape& shape : list(settings.quick))
      if ((shape.operation + " " + shape.label).find(settings.filter) != std::string::npos)
        shapes.push_back(std::move(shape));
  return shapes;
}

RaceRules rules_of(const Settings& settings) {
  RaceRules rules;
  rules.seconds = settings.seconds > 0 ? settings.seconds
                  : settings.quick     ? kQuickSeconds
                                       : kSeconds;
  if (settings.quick) rules.min_rounds = 3;
  return rules;
}

Machine machine_of(const Limits& limits) {
  return {std::string(kernels::isa_name(kernels::isa())),
          at::get_num_threads(),
          last_level_cache(),
          limits.bandwidth(),
          limits.arithmetic(Arithmetic::kBf16),
          limits.arithmetic(Arithmetic::kFloat),
          limits.arithmetic(Arithmetic::kBytes),
          limits.arithmetic(Arithmetic::kNibbles)};
}

OpsRun run_all(const Settings& settings, std::vector<Shape> shapes, const ShapeProgress& progress) {
  const c10::InferenceMode no_gradients;
  Bench bench{rules_of(settings), Limits()};
  OpsRun run{settings, {}, {}, {}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    progress(static_cast<int>(i), static_cast<int>(shapes.size()),
             shapes[i].operation + " " + shapes[i].label);
    const Shape shape = std::move(shapes[i]);  // frees its data after the measurement
    std::optional<Measurement> m;
    try {
      m = shape.measure(bench);
    } catch (const c10::Error& e) {
      throw std::runtime_error(shape.operation + " " + shape.label + ": " +
                               e.what_without_backtrace());
    }
    if (!m) continue;
    m->operation = shape.operation;
    m->label = shape.label;
    m->shape = shape.fields;
    run.measurements.push_back(std::move(*m));
  }
  run.notes = bench.notes;
  run.machine = machine_of(bench.limits);
  return run;
}

}  // namespace

Result<OpsRun> run_ops_bench(const Settings& settings, const ShapeProgress& progress) {
  VALORA_CHECK(kernels::select_isa());
  keep_freed_memory();
  if (settings.threads > 0) at::set_num_threads(settings.threads);
  std::vector<Shape> shapes = all_shapes(settings);
  if (shapes.empty())
    return invalid("no shape's name contains \"" + settings.filter + "\"", "filter");
  try {
    return run_all(settings, std::move(shapes), progress);
  } catch (const std::exception& e) {
    return internal(e.what());
  }
}

}  // namespace valora::bench
