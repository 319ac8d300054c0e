#include <cstring>

#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/cases/delta_step.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kInner = 5e-6;
// States and outputs have the errors of all rows before.
constexpr double kInnerOfRule = 5e-6;

using From = DeltaSizes::From;

struct DeviceDeltaTables {
  explicit DeviceDeltaTables(const DeltaStep& step)
      : plan(with_unused(plan_states(step.spans.data(), step.states.data(), step.spans.size(),
                                     step.tokens, step.state_blocks, kFirst))),
        spans(plan.spans),
        span_of(plan.span_of),
        blocks(shifted(plan.blocks)) {}
  StateTables tables() const {
    return {spans.data(), span_of.data(), blocks.data(), static_cast<int32_t>(plan.spans.size()),
            static_cast<int32_t>(plan.span_of.size())};
  }

 private:
  static constexpr int32_t kFirst = 5;  // blocks of others in the table
  static StatePlan with_unused(StatePlan plan) {
    plan.spans.emplace_back();
    return plan;
  }
  static std::vector<int32_t> shifted(std::vector<int32_t> blocks) {
    blocks.insert(blocks.begin(), kFirst, 1 << 30);
    return blocks;
  }

  StatePlan plan;
  DeviceTable<DeviceStateSpan> spans;
  DeviceTable<int32_t> span_of, blocks;
};

// The matrices of the states as expected, and all other bytes of the pool: windows as expected,
// the rest as before.
void check_pool(Group& group, const DeltaStep& step, const ExpectedDelta& expected,
                const DeviceMemory& pool) {
  std::vector<std::byte> after = pool.download(), before = step.pool;
  std::vector<Expected> wanted;
  std::vector<float> found;
  const size_t bytes = static_cast<size_t>(head_floats(step.shape)) * sizeof(float);
  for (const ExpectedDelta::State& state : expected.states) {
    for (size_t row = 0; row < state.window.size(); ++row)
      std::ranges::copy(state.window[row],
                        before.begin() + static_cast<int64_t>(step.window_at(
                                             state.list, static_cast<int64_t>(row))));
    for (size_t head = 0; head < state.matrices.size(); ++head) {
      const size_t at = step.matrix_at(state.list, static_cast<int64_t>(head));
      std::vector<float> matrix(bytes / sizeof(float));
      std::memcpy(matrix.data(), &after[at], bytes);
      found.insert(found.end(), matrix.begin(), matrix.end());
      wanted.insert(wanted.end(), state.matrices[head].begin(), state.matrices[head].end());
      std::memset(&before[at], 0, bytes);
      std::memset(&after[at], 0, bytes);
    }
  }
  group.check(step.name + " matrices", wanted, DeviceValues(found, Dtype::kFloat), Dtype::kFloat,
              kInnerOfRule);
  group.check(step.name + " pool", before == after && pool.guards_intact(),
              "windows differ, or other bytes of the pool have changed");
}

void delta_case(Group& group, const DeltaSizes& sizes) {
  if (!group.takes(sizes.work())) return;
  const DeltaStep step = make_delta_step(sizes);
  const ExpectedDelta expected = expected_delta(step);
  const Dtype dtype = sizes.dtype;
  const size_t shift = step.shift();
  const DeviceDeltaTables tables(step);
  const DeviceTable<StatePlace> places(step.places);
  const DeviceMemory pool(step.pool.size());
  pool.upload(step.pool.data(), step.pool.size());
  const StatePool states{pool.data(), static_cast<int64_t>(step.block_bytes), places.data()};
  const DeviceValues x(step.x, dtype, shift), weights(step.weights, dtype, shift),
      convolved(expected.convolved.size(), dtype, shift);
  const TokenRows inputs{x.data(), step.x_stride};
  if (!group.launched(step.name + " convolution",
                      short_conv(dtype, step.shape, states, inputs, weights.data(),
                                 convolved.data(), tables.tables(), nullptr)))
    return;
  group.check(step.name + " convolution", expected.convolved, convolved, dtype, kInner);
  group.check(step.name + " states before", pool.download() == step.pool, "a state has changed");
  const DeviceValues qkv(expected.qkv, dtype, shift), z(step.z, dtype, shift),
      a(step.a, dtype, shift), b(step.b, dtype, shift), norm(step.norm, dtype, shift),
      rate(step.rate, Dtype::kFloat), bias(step.bias, Dtype::kFloat),
      out(expected.out.size(), dtype, shift);
  const DeltaRows rows{inputs,
                       qkv.data(),
                       {z.data(), step.z_stride},
                       {b.data(), step.rate_stride},
                       {a.data(), step.rate_stride},
                       static_cast<const float*>(rate.data()),
                       static_cast<const float*>(bias.data()),
                       norm.data(),
                       1e-6f};
  if (!group.launched(step.name, gated_delta(dtype, step.shape, states, rows, out.data(),
                                             tables.tables(), nullptr)))
    return;
  group.check(step.name, expected.out, out, dtype, kInnerOfRule);
  check_pool(group, step, expected, pool);
}

DeltaSizes random_sizes(Dtype dtype, Random& random) {
  const auto between = [&](int low, int high) {
    return static_cast<int>(random.between(low, high));
  };
  DeltaSizes sizes{dtype, between(1, 5), between(1, 2), 1, between(1, 40), between(1, 40)};
  sizes.value_heads = sizes.key_heads * between(1, 3);
  if (random.below(3) == 0) sizes.key_dim = 16 * between(1, 8), sizes.value_dim = 32;
  sizes.shifted = random.below(6) == 0;
  sizes.spans.resize(static_cast<size_t>(between(1, 4)));
  for (DeltaSizes::Span& span : sizes.spans) {
    span.rows = random.below(2) > 0 ? 1 : between(2, 24);
    span.from = static_cast<From>(random.below(3));
    for (int after = between(1, 12); after <= span.rows && span.kept.size() < 2;
         after += between(1, 9))
      span.kept.push_back(after);
  }
  return sizes;
}

}  // namespace

bool test_delta(Dtype dtype, const Selection& selection) {
  Group group(std::string("delta ") + name_of(dtype), selection);
  const DeltaSizes::Span one{1, From::kOwn}, first{1, From::kNone}, moved{1, From::kOther},
      prompt{37, From::kNone, {16, 32}}, next{20, From::kOwn, {5}}, branch{18, From::kOther, {18}};
  for (const bool shifted : {false, true}) {
    delta_case(group, {dtype, 4, 1, 2, 16, 16, {one, first, moved}, shifted});
    delta_case(group, {dtype, 4, 2, 2, 12, 20, {prompt, one, next, branch}, shifted});
  }
  delta_case(group, {dtype, 3, 3, 3, 33, 40, {next, prompt, one}});
  delta_case(group, {dtype, 4, 2, 4, 128, 128, {one, moved}});
  delta_case(group, {dtype, 4, 1, 1, 128, 128, {prompt, next, first}});
  delta_case(group, {dtype, 4, 1, 2, 64, 128, {branch}});
  delta_case(group, {dtype, 4, 1, 1, 129, 30, {next, moved}});     // in the pool
  delta_case(group, {dtype, 4, 1, 2, 24, 200, {prompt, branch}});  // in the pool, 7 tiles
  delta_case(group, {dtype, 1, 1, 1, 5, 3, {one, next}});          // no window
  delta_case(group, {dtype, 16, 1, 1, 9, 7, {{3, From::kOwn, {1, 2}}, {40, From::kNone}}});
  delta_case(group, {dtype, 2, 1, 1, 700, 600, {{2, From::kOwn}}});  // groups of a few rows
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) delta_case(group, random_sizes(dtype, random));
  return group.finish();
}

}  // namespace valora::kernels::cuda
