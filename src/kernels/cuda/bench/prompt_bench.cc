// Prompts by our kernel and by FlashInfer's: times and answers, and which to take.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/bench/model.h"
#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;
constexpr int kMostLayers = 8;

struct Prompts {
  int spans, context, queries;
};

// A step of equal prompts over several layers of random keys and values, so that a launch does not
// find them in the L2 cache.
class PromptStep {
 public:
  PromptStep(const ModelSizes& model, const Prompts& prompts)
      : model_(model),
        tokens_(int64_t{prompts.spans} * prompts.queries),
        per_span_((prompts.context + prompts.queries + kBlockTokens - 1) / kBlockTokens),
        layers_(rotations(prompts.spans * per_span_ * layer_elements() * 2, kMostLayers)),
        random_(1),
        pool_(random_.values(prompts.spans * per_span_ * stride(), kDtype), kDtype),
        q_(random_.values(tokens_ * model.heads * model.dim, kDtype, 2), kDtype),
        out_(tokens_ * model.heads * model.dim, kDtype) {
    blocks_.resize(prompts.spans * per_span_);
    std::iota(blocks_.begin(), blocks_.end(), 0);
    random_.shuffle(blocks_);
    for (int i = 0; i < prompts.spans; ++i)
      spans_.push_back({int64_t{i} * prompts.queries, prompts.queries, prompts.context,
                        blocks_.data() + i * per_span_});
  }

  struct Result {
    double seconds;
    std::vector<float> out;  // of the first layer
    PromptSizes sizes;
  };
  Result run(bool flashinfer, bool hopper = capability() == 90) const {
    AttentionShape shape{model_.heads, model_.kv_heads, model_.dim, kDtype, true};
    shape.multiprocessors = multiprocessors(), shape.shared_bytes = shared_bytes();
    shape.flashinfer = flashinfer, shape.hopper = hopper;
    const AttentionPlan plan = plan_attention(shape, spans_.data(), spans_.size(), tokens_);
    const DeviceTable<DeviceSpan> spans(plan.spans);
    const DeviceTable<int32_t> blocks(plan.block_tables), prompts(plan.prompts);
    const DeviceTable<AttentionTile> tiles(plan.tiles);
    const DeviceMemory parts(prompt_workspace_bytes(plan.sizes, model_.heads, model_.dim));
    const AttentionTables tables{spans.data(), blocks.data(), nullptr,        tiles.data(),
                                 nullptr,      nullptr,       prompts.data(), parts.data()};
    const auto launch = [&](int layer, Stream stream) {
      const KvCache cache{pool_.data(),    stride(),   layer * layer_elements(),
                          model_.kv_heads, model_.dim, kDtype};
      return paged_attention(cache, {q_.data(), int64_t{model_.heads} * model_.dim}, model_.heads,
                             out_.data(), {}, plan.sizes, tables, nullptr, stream);
    };
    Result result{seconds_per_launch(launch, layers_), {}, plan.sizes.prompts};
    out_.memory().poison();
    require(launch(0, nullptr), "paged_attention");
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    result.out = out_.get();
    return result;
  }

 private:
  int64_t layer_elements() const {
    return kv_layer_elements(model_.kv_heads, model_.dim, KvFormat::kPlain);
  }
  int64_t stride() const { return layers_ * layer_elements(); }

  ModelSizes model_;
  int64_t tokens_, per_span_;
  int layers_;
  Random random_;
  DeviceValues pool_, q_, out_;
  std::vector<int32_t> blocks_;
  std::vector<QuerySpan> spans_;
};

// The largest difference of two answers, in units of the dtype's rounding of the largest value.
// Infinite if one has a NaN.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return INFINITY;
    most = std::max(most, std::fabs(double{a[i]} - b[i]));
    largest = std::max(largest, std::fabs(double{a[i]}));
  }
  return most / (largest * unit_roundoff(kDtype));
}

const char* way_of(const PromptSizes& sizes) {
  if (sizes.lists > 0) return ", FA3";
  return sizes.part_rows > 0 ? ", FA2 in parts" : ", FA2";
}

constexpr Prompts kPrompts[] = {{1, 0, 512},   {1, 0, 2048},  {4, 0, 2048},
                                {1, 0, 8192},  {1, 4096, 20}, {1, 4096, 512},
                                {8, 4096, 20}, {8, 512, 64},  {1, 16384, 512}};
// Answers may round differently once in each of our kernel, FlashInfer's, and the parts of keys.
constexpr double kMostDifference = 4;

}  // namespace

void bench_prompts(const Figures& figures) {
  double logarithms = 0, worst = 0;
  int compared = 0;
  for (const ModelSizes& model : kModels)
    for (const Prompts& prompts : kPrompts) {
      const std::string name =
          std::string("prompts ") + model.name + " " + std::to_string(prompts.spans) + " x " +
          std::to_string(prompts.queries) + " after " + std::to_string(prompts.context);
      const double pairs =
          prompts.queries * (prompts.context + (prompts.queries + 1) / 2.0) * prompts.spans;
      const double flops = 4 * pairs * model.heads * model.dim;
      const PromptStep step(model, prompts);
      const PromptStep::Result ours = step.run(false), theirs = step.run(true);
      print_result(name, ours.seconds, 0, flops, figures);
      if (theirs.sizes.items == 0) continue;
      print_result(name + " by FlashInfer" + way_of(theirs.sizes), theirs.seconds, 0, flops,
                   figures);
      if (theirs.sizes.lists > 0) {  // for comparison
        const PromptStep::Result older = step.run(true, false);
        print_result(name + " by FlashInfer" + way_of(older.sizes), older.seconds, 0, flops,
                     figures);
      }
      worst = std::max(worst, difference(ours.out, theirs.out));
      logarithms += std::log(theirs.seconds / ours.seconds);
      ++compared;
    }
  if (compared == 0) {
    std::printf("prompts: this build has none of FlashInfer's kernels for these heads\n");
    return;
  }
  const double ratio = std::exp(logarithms / compared);
  const bool right = worst <= kMostDifference;
  std::printf(
      "prompts: FlashInfer's take %.2f of the time of ours (geometric mean of %d), answers "
      "differ by %.1f roundings%s: take %s\n",
      ratio, compared, worst, right ? "" : ", which is too much",
      right && ratio < 1 ? "flashinfer" : "own");
}

}  // namespace valora::kernels::cuda
