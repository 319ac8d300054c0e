// Starts an engine: options, prompts, model, memory, model card.
#include "engine/start/start_engine.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <ctime>
#include <limits>

#include "api/options.h"
#include "base/log/log.h"
#include "engine/adapters/mode_switcher.h"
#include "engine/memory/free_memory.h"
#include "engine/memory/gpu_memory.h"
#include "engine/memory/memory_plan.h"
#include "engine/model_host.h"
#include "engine/ranks/rank_options.h"
#include "engine/runner/model_fault.h"
#include "engine/start/dtype.h"
#include "engine/start/find_device.h"
#include "engine/start/model_costs.h"
#include "engine/start/start_notes.h"
#include "memory/pool.h"
#include "ops/device/devices.h"
#include "ops/device/dispatch.h"
#include "ops/device/parallel.h"
#include "serving/serving_engine.h"

namespace valora {
namespace {

// The pool's settings, from the memory plan and the options.
memory::PoolConfig pool_config(const MemoryPlan& plan, const EngineOptions& options) {
  memory::PoolConfig config;
  config.blocks = plan.blocks;
  config.swap_blocks = plan.swap_blocks;
  config.state_blocks = plan.state_blocks;
  config.block_bytes = plan.block_bytes;
  config.prefix_caching = options.prefix_caching;
  config.kept_limit = plan.kept_limit;
  return config;
}

static_assert(memory::kBlockTokens == ops::KvArena::kBlockTokens,
              "the block tables count the arena's blocks");

using Started = Result<std::unique_ptr<serving::LocalEngine>>;

// The objects created so far during a start.
class EngineStart {
 public:
  EngineStart(const EngineOptions& options, const Clock& clock, const EngineChanges& changes)
      : options_(options), clock_(clock), changes_(changes) {}

  Started run();

 private:
  Status load();
  Result<std::unique_ptr<scheduler::Policy>> make_policy() const;
  Status open_frontend();
  Status load_weights();
  Result<MemoryPlan> plan_for(const scheduler::Policy& policy);
  void bound_merges(const scheduler::Policy& policy);
  Status make_tiers();
  models::Model& model_of(int rank) const {
    return rank == 0 ? *loaded_.model : *loaded_.others[static_cast<size_t>(rank) - 1];
  }
  std::unique_ptr<ModeSwitcher> make_switcher(int rank);
  Status make_runner(const scheduler::Policy& policy);
  Status set_up_core(std::unique_ptr<scheduler::Policy> policy);
  void fill_card();

  const EngineOptions& options_;
  const Clock& clock_;
  const EngineChanges& changes_;
  at::Device device_ = at::kCPU;
  std::unique_ptr<serving::Frontend> frontend_;
  std::unique_ptr<Communicator> communicator_;  // null with one rank
  std::vector<CoreSet> rank_cores_;             // empty: ranks are not bound
  models::LoadedModel loaded_;
  MemoryPlan plan_;
  adapters::AdapterLimits limits_;
  std::shared_ptr<const MergeBound> merges_;
  std::unique_ptr<MemoryTiers> tiers_;
  std::unique_ptr<Runner> runner_;
  serving::CoreConfig core_;
  std::unique_ptr<scheduler::Policy> policy_;
  ModelCard card_;
  std::vector<std::string> notes_;
};

Started EngineStart::run() {
  try {
    VALORA_CHECK(load());
    serving::EngineParts parts{.frontend = std::move(frontend_),
                               .policy = std::move(policy_),
                               .core = std::move(core_),
                               .card = std::move(card_),
                               .cost_key = cost_key(options_, loaded_, device_),
                               .notes = std::move(notes_)};
    parts.model = std::make_unique<ModelHost>(
        std::move(loaded_), std::move(tiers_), std::move(runner_), limits_, std::move(merges_),
        device_, HeadStore::limit_beside(plan_.block_bytes * plan_.blocks));
    auto engine = std::make_unique<serving::ServingEngine>(options_, std::move(parts), clock_);
    engine->warm_up();
    return std::unique_ptr<serving::LocalEngine>(std::move(engine));
  } catch (const std::exception& e) {  // usually a failed allocation
    return unprocessable(options_.model_path + " could not be loaded: " + reason_of(e),
                         options_.model_path);
  }
}

Result<std::unique_ptr<scheduler::Policy>> EngineStart::make_policy() const {
  if (changes_.policy) return changes_.policy();
  const SchedulingOptions& s = options_.scheduling;
  return scheduler::make_policy(
      s.policy, {.tolerance = from_seconds(s.tolerance), .max_adapters = s.max_adapters});
}

Status EngineStart::load() {
  VALORA_TRY(device, find_device(options_.device));
  device_ = device;
  VALORA_CHECK(check_rank_options(options_));
  VALORA_CHECK(set_up_compute(options_, device_));
  VALORA_TRY(cores, rank_cores(options_, numa_nodes()));
  rank_cores_ = std::move(cores);
  split_threads(options_, rank_cores_);
  VALORA_CHECK(check_limits(options_));
  VALORA_TRY(policy, make_policy());
  VALORA_CHECK(open_frontend());
  VALORA_CHECK(load_weights());
  if (policy->merges() && options_.merge == MergePlace::kInPlace &&
      loaded_.weights->keeps_integers())
    return invalid(
        "--merge inplace writes merged weights over the base model's, which are integers; use "
        "--merge shadow, or a --scheduling-policy that does not merge",
        "merge");
  if (policy->merges() && loaded_.weights->rounds_inputs())
    return invalid(
        "the checkpoint rounds the inputs of its linears, but never those of adapters, so the two "
        "cannot be one merged weight; use --scheduling-policy unmerged",
        "scheduling-policy");
  VALORA_TRY(plan, plan_for(*policy));
  plan_ = std::move(plan);
  frontend_->limit_tokens(plan_.max_model_len);
  bound_merges(*policy);
  VALORA_CHECK(make_tiers());
  VALORA_CHECK(make_runner(*policy));
  VALORA_CHECK(set_up_core(std::move(policy)));
  fill_card();
  for (std::string& note : group_notes(options_)) notes_.push_back(std::move(note));
  return {};
}

// Before the weights, which may take minutes, so that a broken tokenizer or chat template shows at
// once.
Status EngineStart::open_frontend() {
  VALORA_TRY(config, models::read_model_config({options_.model_path, options_.mmproj}));
  VALORA_TRY(family, models::find_family(config));
  VALORA_TRY(spec, models::read_model_spec(*family, config));
  VALORA_CHECK(models::check_ranks(spec, options_.tensor_parallel_size));
  VALORA_CHECK(check_needs(options_, spec));
  VALORA_TRY(frontend, serving::Frontend::open(options_, *family, std::move(spec)));
  frontend_ = std::move(frontend);
  return {};
}

Status EngineStart::load_weights() {
  communicator_ = make_communicator(options_);
  VALORA_TRY(loaded,
             models::load_model({options_.model_path, options_.mmproj}, scalar_type(options_.dtype),
                                device_, models::ModelUse::kServing, rounding_of(options_),
                                {communicator_.get(), rank_cores_}));
  loaded_ = std::move(loaded);
  for (const std::string& name : loaded_.unused_tensors)
    spdlog::warn("{}: tensor {} is not used", options_.model_path, name);
  return {};
}

Result<MemoryPlan> EngineStart::plan_for(const scheduler::Policy& policy) {
  const bool shadowed = policy.merges() && options_.merge == MergePlace::kShadow;
  const int ranks = options_.tensor_parallel_size;
  FreeMemory free;
  int64_t shadow_bytes = 0;  // total of all ranks
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank == 0 || !device_.is_cpu())
      free.add(available_memory(ops::device_of_rank(device_, rank)));
    if (!shadowed) continue;
    const int64_t own = ModeSwitcher::shadow_bytes(model_of(rank));
    VALORA_CHECK(check_shadow(policy.name(), own, free.of(free.devices() - 1),
                              loaded_.weights->keeps_integers()));
    free.take(free.devices() - 1, own);
    shadow_bytes += own;
  }
  const models::ModelSpec& spec = loaded_.model->spec();
  VALORA_CHECK(check_kv_format(options_, loaded_.dtype, device_));
  const int64_t kept = device_.is_cpu()
                           ? 0
                           : ranks * gpu_working_bytes(options_, spec, loaded_.dtype,
                                                       loaded_.weights->keeps_integers());
  VALORA_TRY(cache_bytes, plan_caches(options_, spec, device_.is_cpu(), free.of(0)));
  free.take(0, cache_bytes);
  VALORA_TRY(
      plan, plan_memory(options_, spec,
                        block_sizes(spec, options_.max_lora_rank, loaded_.dtype,
                                    kv_format_of(options_), device_, options_.tensor_parallel_size),
                        free.for_pool(), kept));
  if (!device_.is_cpu()) {
    VALORA_TRY(cache, plan_adapter_cache(options_.memory, available_host_memory()));
    plan.adapter_cache_bytes = cache;
  }
  notes_ = memory_notes(options_, loaded_, plan, {shadowed, shadow_bytes, kept});
  for (int rank = 0; ranks > 1 && !device_.is_cpu() && rank < ranks; ++rank)
    notes_.push_back(
        fmt::format("rank {} runs on {}", rank, ops::device_of_rank(device_, rank).str()));
  for (size_t rank = 0; rank < rank_cores_.size(); ++rank)
    notes_.push_back(fmt::format("rank {} runs on CPUs {}", rank, to_text(rank_cores_[rank])));
  return plan;
}

void EngineStart::bound_merges(const scheduler::Policy& policy) {
  std::vector<models::Model*> ranks;
  for (int rank = 0; rank < options_.tensor_parallel_size; ++rank) ranks.push_back(&model_of(rank));
  merges_ = policy.merges() ? std::make_shared<const MergeBound>(ranks, loaded_.dtype)
                            : std::make_shared<const MergeBound>();
  if (policy.merges() && loaded_.dtype != at::kFloat)
    notes_.push_back(
        "with 16-bit weights an adapter is merged only while no other requests run, so that the "
        "answers to others are exact");
}

Status EngineStart::make_tiers() {
  limits_ = {options_.max_lora_rank, largest_adapter()};
  VALORA_TRY(tiers, MemoryTiers::make(plan_, options_, loaded_.model->spec(), loaded_.dtype,
                                      device_, limits_, merges_));
  tiers_ = std::move(tiers);
  return {};
}

std::unique_ptr<ModeSwitcher> EngineStart::make_switcher(int rank) {
  return std::make_unique<ModeSwitcher>(model_of(rank), *loaded_.weights, rank, options_.merge,
                                        ops::launched_work(ops::device_of_rank(device_, rank)),
                                        clock_);
}

Status EngineStart::make_runner(const scheduler::Policy& policy) {
  std::vector<std::unique_ptr<RankRunner>> ranks;
  for (int rank = 0; rank < options_.tensor_parallel_size; ++rank) {
    const at::Device own = ops::device_of_rank(device_, rank);
    const ops::OnDevice current(own);
    ranks.push_back(std::make_unique<RankRunner>(
        rank, model_of(rank), tiers_->kv_arena(rank), tiers_->states(rank), own,
        policy.merges() ? make_switcher(rank) : nullptr, communicator_.get(),
        StepLimits{options_.max_num_seqs, options_.max_num_batched_tokens, plan_.max_model_len}));
  }
  const Runner::Options options{
      .visual_cache_bytes = options_.visual_cache_bytes,
      .mask_seconds = loaded_.model->spec().state.layers > 0
                          ? std::numeric_limits<double>::infinity()
                          : options_.form_limits.step,
      .adapts_threads =
          options_.threads == 0 && device_.is_cpu() && options_.tensor_parallel_size == 1,
  };
  runner_ = std::make_unique<Runner>(
      *loaded_.model,
      std::make_unique<RankGroup>(std::move(ranks), std::move(communicator_), rank_cores_),
      loaded_.dtype, device_, ops::launched_work(device_), options, clock_);
  return {};
}

Status EngineStart::set_up_core(std::unique_ptr<scheduler::Policy> policy) {
  VALORA_TRY(known, find_costs(options_, loaded_, device_));
  const SpeculationOptions& speculation = options_.speculation;
  if (!speculation.ignored.empty())
    notes_.push_back("--speculative-config: the method " + speculation.ignored +
                     " has no effect: no draft model is used, answers are the same");
  if (policy->compares_costs()) notes_.push_back("costs of steps: " + known.source);
  core_ = {{.max_num_seqs = options_.max_num_seqs,
            .max_num_batched_tokens = options_.max_num_batched_tokens,
            .max_decode_gap = options_.max_decode_gap.value_or(kTextGap),
            .max_media_gap = options_.max_decode_gap.value_or(kMediaGap),
            .costs = known.costs,
            .merge_in_place = options_.merge == MergePlace::kInPlace,
            .early_abort = options_.scheduling.early_abort},
           plan_.max_model_len,
           pool_config(plan_, options_)};
  if (speculation.tokens > 0)
    core_.scheduler.proposer =
        std::make_shared<scheduler::NgramProposer>(scheduler::NgramProposer::Settings{
            speculation.tokens, speculation.longest, speculation.least});
  policy_ = std::move(policy);
  return changes_.core ? changes_.core(core_) : Status();
}

void EngineStart::fill_card() {
  const models::ModelSpec& spec = loaded_.model->spec();
  card_.name = options_.served_name.empty() ? options_.model_path : options_.served_name;
  card_.path = options_.model_path;
  card_.architecture = spec.architecture;
  card_.dtype = dtype_name(loaded_.dtype);
  card_.device = name_of(options_.device);
  card_.parameters = loaded_.parameters;
  card_.max_model_len = plan_.max_model_len;
  card_.created = std::time(nullptr);
  card_.images = spec.image_token.has_value();
  card_.videos = spec.video_token.has_value();
  card_.media_limits = options_.media_limits;
  card_.max_logprobs = options_.max_logprobs;
  card_.embedding_size = spec.hidden;
  card_.retrieval = frontend_->retrieval();
  card_.tool_calls = frontend_->chat_format().tool_call_style();
  card_.template_takes_tools = frontend_->chat_format().takes_tools();
  card_.kv_block_tokens = memory::kBlockTokens;
  card_.kv_blocks = plan_.blocks;
  card_.kv_bytes = static_cast<size_t>(plan_.block_bytes) * plan_.blocks;
  card_.kv_dtype = kv_dtype_name(options_, loaded_.dtype);
  card_.kv_token_bytes = plan_.kv_block_bytes / memory::kBlockTokens;
  card_.weight_bytes = loaded_.weights->held().all();
}

}  // namespace

Result<std::unique_ptr<serving::LocalEngine>> start_engine(const EngineOptions& options,
                                                           const Clock& clock,
                                                           const EngineChanges& changes) {
  const EngineOptions fitting = with_fitting_caches(options, available_host_memory());
  auto engine = EngineStart(fitting, clock, changes).run();
  ops::release_threads();  // those that loaded the weights, so that the engine's own may spin
  return engine;
}

}  // namespace valora
