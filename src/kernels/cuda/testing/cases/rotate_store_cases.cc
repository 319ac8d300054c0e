#include <cmath>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/testing/cases/attention_step.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 5e-6;

// Cosines and sines of random angles, per token.
struct StepAngles {
  std::vector<float> cos, sin;
  DeviceValues on_device_cos, on_device_sin;

  StepAngles(Random& random, int64_t count, float scale)
      : on_device_cos(static_cast<size_t>(count), Dtype::kFloat),
        on_device_sin(static_cast<size_t>(count), Dtype::kFloat) {
    for (int64_t i = 0; i < count; ++i) {
      const float angle = random.uniform(-3, 3);
      cos.push_back(scale * std::cos(angle)), sin.push_back(scale * std::sin(angle));
    }
    on_device_cos.set(cos), on_device_sin.set(sin);
  }
  Angles on_device() const {
    return {static_cast<const float*>(on_device_cos.data()),
            static_cast<const float*>(on_device_sin.data())};
  }
};

// Rotates a head, `from`, by a token's angles into `to`.
void rotate(const float* from, Expected* to, int half, const StepAngles& angles, int64_t token) {
  for (int i = 0; i < half; ++i) {
    const double a = from[i], b = from[i + half], c = angles.cos[token * half + i],
                 d = angles.sin[token * half + i];
    to[i] = {a * c - b * d, std::abs(a * c) + std::abs(b * d)};
    to[i + half] = {b * c + a * d, std::abs(b * c) + std::abs(a * d)};
  }
}

struct ExpectedStep {
  std::vector<Expected> q, pool;
};

ExpectedStep expected_of(const AttentionStep& step, int rotated, const StepAngles& of_q,
                         const StepAngles& of_k) {
  const StepSizes& s = step.sizes;
  ExpectedStep expected;
  for (const float value : step.q) expected.q.push_back({value, 0});
  for (int64_t t = 0; t < step.tokens; ++t)
    for (int h = 0; h < s.heads; ++h) {
      const int64_t at = t * step.q_stride + int64_t{h} * s.dim;
      rotate(&step.q[at], &expected.q[at], rotated / 2, of_q, t);
    }
  for (const float value : step.pool_after) expected.pool.push_back({value, 0});
  for (const QuerySpan& span : step.spans)
    for (int64_t i = 0; i < span.queries; ++i)
      for (int h = 0; h < s.kv_heads; ++h) {
        const int64_t token = span.begin + i;
        rotate(&step.k[token * step.kv_stride + int64_t{h} * s.dim],
               &expected.pool[step.cached(span, span.context + i, h, 0)], rotated / 2, of_k, token);
      }
  return expected;
}

// part: elements of each head that are rotated; 0: all.
void step_case(Group& group, const StepSizes& sizes, int part = 0) {
  double tokens = 2;
  for (const auto& [context, queries] : sizes.lengths) tokens += queries + context / 4.0;
  if (!group.takes(tokens * (sizes.heads + 2 * sizes.kv_heads) * sizes.dim)) return;
  const AttentionStep step = make_step(sizes);
  const int rotated = part > 0 ? part : sizes.dim;
  const std::string name = "rotate_and_store " + std::to_string(rotated) + " of " + step.name;
  const Dtype dtype = sizes.dtype;
  Random random(sizes.dim);
  const StepAngles of_q(random, step.tokens * rotated / 2, 1.25f),
      of_k(random, step.tokens * rotated / 2, 1);
  const AttentionPlan plan =
      plan_attention(step.shape(), step.spans.data(), step.spans.size(), step.tokens);
  const DeviceTable<int64_t> slots(plan.slots);
  const DeviceValues q(step.q, dtype, step.shift()), k(step.k, dtype, step.shift()),
      v(step.v, dtype, step.shift()), pool(step.pool_before, dtype, step.shift());
  const auto cache_in = [&](const DeviceValues& memory) {
    return KvCache{memory.data(),  step.block_stride, step.layer_offset,
                   sizes.kv_heads, sizes.dim,         dtype};
  };
  const int status =
      rotate_and_store(cache_in(pool), {q.data(), step.q_stride, sizes.heads},
                       {k.data(), step.kv_stride}, {v.data(), step.kv_stride}, of_q.on_device(),
                       of_k.on_device(), rotated, slots.data(), step.tokens, nullptr);
  if (!group.launched(name, status)) return;
  const ExpectedStep expected = expected_of(step, rotated, of_q, of_k);
  group.check(name + " queries", expected.q, q, dtype, kInner);
  group.check(name + " cache", expected.pool, pool, dtype, kInner);
  group.check_same(name + " keys", step.k, k);
  group.check_same(name + " values", step.v, v);
  // The same computed in three launches.
  const DeviceValues q2(step.q, dtype, step.shift()), k2(step.k, dtype, step.shift()),
      pool2(step.pool_before, dtype, step.shift());
  const auto apart = [&](const DeviceValues& x, int64_t stride, int heads, const Angles& angles) {
    return rotate_half(dtype, {x.data(), stride, heads}, angles.cos, angles.sin, step.tokens,
                       sizes.dim, rotated, nullptr);
  };
  int other = apart(q2, step.q_stride, sizes.heads, of_q.on_device());
  if (other == 0) other = apart(k2, step.kv_stride, sizes.kv_heads, of_k.on_device());
  if (other == 0)
    other = store_kv(cache_in(pool2), {k2.data(), step.kv_stride}, {v.data(), step.kv_stride},
                     slots.data(), step.tokens, nullptr);
  if (!group.launched(name + " apart", other)) return;
  group.check_same(name + " queries apart", q2.get(), q);
  group.check_same(name + " cache apart", pool2.get(), pool);
}

}  // namespace

bool test_rotate_store(Dtype dtype, const Selection& selection) {
  Group group(std::string("rotate and store ") + name_of(dtype), selection);
  const std::vector<std::pair<int, int>> mixed = {{0, 5}, {37, 1}, {15, 1}, {16, 2}, {63, 1}};
  for (const bool shifted : {false, true}) {
    step_case(group, {dtype, 14, 2, 64, {{20, 1}}, shifted});
    step_case(group, {dtype, 28, 4, 128, mixed, shifted});
    step_case(group, {dtype, 6, 2, 80, mixed, shifted});
    step_case(group, {dtype, 4, 4, 16, mixed, shifted});
    step_case(group, {dtype, 3, 1, 10, mixed, shifted});
    step_case(group, {dtype, 2, 2, 2, {{0, 1}}, shifted});
    step_case(group, {dtype, 8, 2, 256, {{0, 40}, {3, 1}}, shifted});
    step_case(group, {dtype, 8, 2, 256, {{0, 7}, {3, 1}}, shifted}, 64);
    step_case(group, {dtype, 4, 2, 32, mixed, shifted}, 16);
    step_case(group, {dtype, 3, 3, 24, mixed, shifted}, 6);  // no whole vectors
  }
  step_case(group, {dtype, 14, 2, 64, {{0, 300}, {100, 33}}, false});
  step_case(group, {dtype, 4, 2, 32, {{0, 1}, {5, 2}}, false, 3});
  step_case(group, {dtype, 30, 10, 64, {{3, 1}}, false});  // more than one thread block per token
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) {
    const auto between = [&](int low, int high) {
      return static_cast<int>(random.between(low, high));
    };
    StepSizes sizes{dtype, 1, between(1, 3), 2 * between(1, 64), {}, random.below(8) == 0};
    if (random.below(2) > 0) sizes.dim = 16 * between(1, 16);
    sizes.heads = sizes.kv_heads * between(1, 7);
    sizes.lengths.resize(between(1, 5));
    for (auto& [context, queries] : sizes.lengths)
      context = between(0, 50), queries = random.below(2) > 0 ? 1 : between(1, 20);
    step_case(group, sizes, random.below(3) == 0 ? 2 * between(1, sizes.dim / 2) : 0);
  }
  return group.finish();
}

}  // namespace valora::kernels::cuda
