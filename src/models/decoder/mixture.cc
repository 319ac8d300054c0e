#include "models/decoder/mixture.h"

#include "models/decoder/layers.h"
#include "ops/linear/grouped_linear.h"

namespace valora::models {
namespace {

constexpr char kRouter[] = "mlp.gate", kExperts[] = "mlp.experts.", kShared[] = "mlp.shared_expert",
               kSharedGate[] = "mlp.shared_expert_gate";

// The rows of a step by expert: those of one expert are adjacent, in the order of their tokens.
struct RowsByExpert {
  struct Rows {
    int64_t expert, begin, end;
  };
  std::vector<Rows> experts;  // those with rows, in ascending order
  at::Tensor tokens;          // int64 [T · chosen]: the token of each row
  at::Tensor places;          // int64 [T, chosen]: the row of each choice
};

// choices: int64 [T, chosen], contiguous, in host memory.
RowsByExpert rows_by_expert(const at::Tensor& choices, int64_t experts) {
  const int64_t count = choices.numel(), chosen = choices.size(1);
  const int64_t* const expert = choices.const_data_ptr<int64_t>();
  std::vector<int64_t> next(static_cast<size_t>(experts) + 1);
  for (int64_t i = 0; i < count; ++i) ++next[static_cast<size_t>(expert[i]) + 1];
  RowsByExpert rows{{}, at::empty({count}, at::kLong), at::empty(choices.sizes(), at::kLong)};
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t begin = next[e];
    next[e + 1] += begin;
    if (next[e + 1] > begin) rows.experts.push_back({e, begin, next[e + 1]});
  }
  int64_t* const tokens = rows.tokens.mutable_data_ptr<int64_t>();
  int64_t* const places = rows.places.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    places[i] = next[expert[i]]++;
    tokens[places[i]] = i / chosen;
  }
  return rows;
}

bool adapts(const Adaptation& adaptation, const Expert& expert) {
  for (const Linear* linear : {&expert.gate, &expert.up, &expert.down})
    if (adaptation.lora.touches(linear->module()) ||
        adaptation.lora.changes_output(linear->module()))
      return true;
  return false;
}

Expert make_expert(Weights& weights, const adapters::ModuleTable& modules,
                   const std::string& name) {
  const auto linear = [&](const char* part) {
    return table_linear(weights, modules, name + part, false);
  };
  Expert expert{linear(".gate_proj"), linear(".up_proj"), linear(".down_proj")};
  place_adjacent_linears({&expert.gate, &expert.up});
  return expert;
}

}  // namespace

void add_mixture_modules(const MixtureConfig& m, int64_t hidden, const std::string& layer,
                         int64_t index, std::vector<adapters::Module>& modules) {
  using Part = adapters::Module::Mixture;
  using enum adapters::Split;
  const auto add = [&](const std::string& name, int64_t in, int64_t out,
                       const adapters::Partition& partition, Part part) {
    modules.push_back({.name = layer + name,
                       .in = in,
                       .out = out,
                       .layer = index,
                       .partition = partition,
                       .mixture = part});
  };
  const auto add_expert = [&](const std::string& name, int64_t width, Part part) {
    add(name + ".gate_proj", hidden, width, {kOutputs, width}, part);
    add(name + ".up_proj", hidden, width, {kOutputs, width}, part);
    add(name + ".down_proj", width, hidden, {kInputs, width}, part);
  };
  add(kRouter, hidden, m.experts, {kEach}, Part::kRouter);
  for (int64_t e = 0; e < m.experts; ++e)
    add_expert(kExperts + std::to_string(e), m.width, Part::kExpert);
  if (m.shared_width == 0) return;
  add_expert(kShared, m.shared_width, Part::kNone);
  add(kSharedGate, hidden, 1, {kEach}, Part::kRouter);
}

Mixture::Mixture(Weights& weights, const adapters::ModuleTable& modules, const std::string& layer,
                 const MixtureConfig& config, int64_t hidden, ops::Gate activation)
    : config_(config),
      ranks_(weights.shard()),
      activation_(activation),
      router_(table_linear(weights, modules, layer + kRouter, false)) {
  weights.split_experts(layer + kExperts, {config.experts, hidden, config.width});
  for (int64_t e = 0; e < config.experts; ++e)
    experts_.push_back(make_expert(weights, modules, layer + kExperts + std::to_string(e)));
  if (config.shared_width == 0) return;
  shared_ = make_expert(weights, modules, layer + kShared);
  shared_gate_ = table_linear(weights, modules, layer + kSharedGate, false);
}

void Mixture::append_linears(std::vector<Linear*>& linears) {
  const auto append = [&](Expert& expert) {
    linears.insert(linears.end(), {&expert.gate, &expert.up, &expert.down});
  };
  linears.push_back(&router_);
  for (Expert& expert : experts_) append(expert);
  if (!shared_) return;
  append(*shared_);
  linears.push_back(&shared_gate_);
}

at::Tensor Mixture::operator()(const at::Tensor& x, const Adaptation& adaptation) const {
  // Rounded to x's dtype where the reference rounds, so that experts with equal logits are the
  // same.
  const at::Tensor probabilities = at::softmax(router_(x, adaptation), -1, at::kFloat);
  auto [weights, choices] = at::topk(probabilities, config_.chosen, -1);
  if (config_.normed) weights = weights / weights.sum(-1, true);
  weights = weights.to(x.scalar_type()).to(at::kFloat);

  const RowsByExpert rows = rows_by_expert(choices.contiguous(), config_.experts);
  const at::Tensor inputs = x.index_select(0, rows.tokens);
  std::vector<Adaptation> adaptations;  // of experts that adapters touch
  adaptations.reserve(rows.experts.size());
  const Adaptation others{adaptation.merged, {}, adaptation.observer};
  std::vector<LinearRows> first, second;
  for (const RowsByExpert::Rows& r : rows.experts) {
    const Expert& expert = experts_[static_cast<size_t>(r.expert)];
    const Adaptation* own = &others;
    if (adapts(adaptation, expert)) {
      const int64_t* const tokens = rows.tokens.const_data_ptr<int64_t>();
      adaptations.push_back(
          adaptation.of_rows({tokens + r.begin, static_cast<size_t>(r.end - r.begin)}));
      own = &adaptations.back();
    }
    first.push_back({r.begin, r.end, &expert.gate, &expert.up, own});
    second.push_back({r.begin, r.end, &expert.down, nullptr, own});
  }
  const at::Tensor inner = grouped_gated(inputs, first, activation_);
  // Parts of sums are weighted and added before the ranks exchange them, in float.
  const at::Tensor outputs = ranks_.of > 1 ? grouped_part(inner, second) : grouped(inner, second);
  at::Tensor y = ops::weighted_rows(outputs, rows.places, weights);
  if (shared_) y = with_shared(x, y, adaptation);
  return ranks_.of > 1 ? sum_of_ranks(y, ranks_).to(x.scalar_type()) : y;
}

at::Tensor Mixture::with_shared(const at::Tensor& x, const at::Tensor& y,
                                const Adaptation& adaptation) const {
  const at::Tensor inner = gated(x, shared_->gate, shared_->up, adaptation, activation_);
  const at::Tensor shared =
      ranks_.of > 1 ? shared_->down.part(inner, adaptation) : shared_->down(inner, adaptation);
  return y + at::sigmoid(shared_gate_(x, adaptation)) * shared;
}

}  // namespace valora::models
