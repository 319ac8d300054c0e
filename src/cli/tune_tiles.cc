#include "cli/tune_tiles.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/files/file.h"
#include "cli/progress/progress_bar.h"
#include "engine/start/dtype.h"
#include "engine/start/find_device.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"
#include "kernels/tiles/profiler.h"
#include "kernels/tiles/tile_file.h"
#include "kernels/tiles/tune.h"
#include "models/registry.h"
#include "ops/device/gpu.h"
#include "ops/device/parallel.h"
#include "ops/linear/linear.h"
#include "ops/lora/lora_profiler.h"

namespace valora::cli {
namespace {

// A single thread by default, because more give noisy results on a busy machine.
int threads_for_tiles(const TuneFlags& flags) { return flags.threads.value_or(1); }
Status check_tiles(const TuneFlags& flags) {
  const EngineOptions &o = flags.engine, defaults;
  if (o.quantization != defaults.quantization || o.activations != defaults.activations ||
      o.kv_cache_dtype != defaults.kv_cache_dtype || o.rank_cores != defaults.rank_cores)
    return invalid(
        "--quantization, --activations, --kv-cache-dtype and --rank-cores need --cost: tiles are "
        "of products of floats, measured on one thread");
  return {};
}

Result<models::ModelSpec> spec_of(const TuneFlags& flags, const models::ConfigReader& config) {
  VALORA_TRY(family, models::find_family(config));
  VALORA_TRY(spec, models::read_model_spec(*family, config));
  VALORA_CHECK(models::check_ranks(spec, flags.engine.tensor_parallel_size));
  return spec;
}

// The groups of a decoder layer's linears that are projected together: adjacent ones in the same
// block with inputs of one size.
Result<kernels::CudaTuneSpace> cuda_space_of(const TuneFlags& flags) {
  VALORA_TRY(config, models::read_model_config({flags.engine.model_path, flags.engine.mmproj}));
  VALORA_TRY(spec, spec_of(flags, config));
  kernels::CudaTuneSpace space{.projections = {},
                               .weights = 0,
                               .ranks = flags.ranks,
                               .max_tokens = flags.max_tokens,
                               .arch = kernels::arch_of(ops::this_gpu().capability)};
  std::string part;
  for (const adapters::Module& module : spec.modules.modules()) {
    if (!module.in_decoder()) continue;
    space.weights += module.out * module.in;
    const std::string own = module.name.substr(0, module.name.rfind('.'));
    auto& all = space.projections;
    if (own == part && all.back().in == module.in && all.back().outs.size() < ops::kMaxSlices)
      all.back().outs.push_back(module.out);
    else
      all.push_back({module.in, {module.out}});
    part = own;
  }
  return space;
}

// The product sizes of a model's linears on all ranks, from its configuration. Only the dtype is
// read from the checkpoint.
Result<kernels::TuneSpace> space_of(const TuneFlags& flags) {
  const EngineOptions& options = flags.engine;
  const int ranks = options.tensor_parallel_size;
  VALORA_TRY(config, models::read_model_config({options.model_path, options.mmproj}));
  VALORA_TRY(spec, spec_of(flags, config));
  at::ScalarType stored = at::kFloat;
  if (options.dtype == ComputeDtype::kAuto) {
    VALORA_TRY(weights, models::Weights::open({options.model_path, options.mmproj}));
    stored = weights->stored_dtype();
  }
  VALORA_TRY(dtype, models::resolve_dtype(scalar_type(options.dtype), config, stored,
                                          at::Device(at::kCPU)));
  kernels::TuneSpace space{.linears = {},
                           .ranks = flags.ranks,
                           .max_tokens = flags.max_tokens,
                           .float32 = dtype == at::kFloat,
                           .isa = kernels::isa()};
  const auto add = [](auto& sizes, std::pair<int64_t, int64_t> size) {
    if (std::ranges::find(sizes, size) == sizes.end()) sizes.push_back(size);
  };
  for (const adapters::Module& module : spec.modules.modules())
    for (int rank = 0; rank < ranks && module.kind == adapters::ModuleKind::kLinear; ++rank) {
      const adapters::MatrixSlice slice = slice_of(module, rank, ranks);
      add(space.linears, {slice.out.size(), slice.in.size()});
    }
  for (int rank = 0; rank < ranks; ++rank)  // the output layer
    add(space.others, {adapters::share_of(spec.vocab, rank, ranks).size(), spec.hidden});
  return space;
}

Result<std::string> output_path(const TuneFlags& flags, const kernels::Hardware& hardware) {
  if (!flags.output.empty()) return flags.output;
  const std::string path = kernels::own_tiles_path(hardware);
  if (path.empty())
    return invalid("neither $XDG_CACHE_HOME nor $HOME is set; choose the file with --output");
  return path;
}

// With --resume: the entries already in the file.
Result<std::vector<kernels::TileEntry>> known_entries(const TuneFlags& flags,
                                                      const std::string& path,
                                                      const kernels::Hardware& hardware) {
  if (!flags.resume || !file_exists(path)) return std::vector<kernels::TileEntry>();
  VALORA_TRY(file, kernels::read_tile_file(path));
  if (file.hardware != hardware)
    return invalid("--resume: " + path +
                   " was measured on other hardware: " + file.hardware.text());
  return std::vector<kernels::TileEntry>(file.table.entries().begin(), file.table.entries().end());
}

constexpr const char* kKinds[] = {"dense",       "shrink",      "expand",
                                  "long shrink", "long expand", "merge"};

std::string describe(const kernels::ProductShape& s) {
  const bool gpu = s.processor.device() == kernels::Device::kCuda;
  if (s.kind == kernels::ProductKind::kMerge)
    return fmt::format("merge of rank {} into {} weights", s.k, s.n);
  return fmt::format("{} of {} {}, {} to {}", kKinds[static_cast<int>(s.kind)], s.m,
                     gpu ? "tiles" : "tokens", s.k, s.n);
}

std::string describe(const kernels::Tile& tile) {
  if (const auto* cpu = std::get_if<kernels::CpuTile>(&tile))
    return fmt::format("{} x {}, {} chains", cpu->rows, cpu->panels * 16, cpu->chains);
  const auto& t = std::get<kernels::CudaTile>(tile);
  return fmt::format("{} wide, {} warps, {} stages, {} splits", t.width, t.warps, t.stages,
                     t.splits);
}

void print_gain(const std::string& over, const kernels::TuneGain& gain) {
  fmt::print("  {:<44} {:.3f}x as fast (geometric mean), {:.2f}x at most\n", over, gain.mean,
             gain.worst);
}

void print_gains(const std::vector<kernels::TunedShape>& tuned) {
  if (tuned.empty()) return;
  print_gain("over the formula", kernels::gains_of(tuned).formula);
  for (size_t kind = 0; kind < std::size(kKinds); ++kind) {
    std::vector<kernels::TunedShape> some;
    for (const kernels::TunedShape& shape : tuned)
      if (static_cast<size_t>(shape.shape.kind) == kind) some.push_back(shape);
    if (some.empty()) continue;
    const kernels::TuneGains gains = kernels::gains_of(some);
    print_gain(fmt::format("  {} products ({} shapes)", kKinds[kind], some.size()), gains.formula);
    print_gain(fmt::format("    over the best single tile ({})", describe(gains.single_tile)),
               gains.single);
  }
}

// Writes the entries measured so far, at most once per second.
class Journal {
 public:
  Journal(std::string path, kernels::Hardware hardware, std::vector<kernels::TileEntry> entries,
          const Clock& clock)
      : path_(std::move(path)),
        hardware_(std::move(hardware)),
        entries_(std::move(entries)),
        clock_(clock),
        written_(clock.now()) {}

  void add(const kernels::TunedShape& tuned) {
    entries_.push_back({kernels::TileKey::of(tuned.shape), tuned.chosen});
    if (clock_.now() - written_ > std::chrono::seconds(1) && status_.ok()) status_ = write();
  }
  Status write() {
    written_ = clock_.now();
    return kernels::write_tile_file(path_, {hardware_, kernels::TileTable(entries_)});
  }

 private:
  std::string path_;
  kernels::Hardware hardware_;
  std::vector<kernels::TileEntry> entries_;
  const Clock& clock_;
  TimePoint written_;
  Status status_;
};

// The shapes to measure, and the hardware.
struct Search {
  kernels::Hardware hardware;
  std::vector<kernels::ProductShape> shapes;
  kernels::MeasureTile measure;
};

Status run(const TuneFlags& flags, const Search& search, const Clock& clock) {
  VALORA_TRY(path, output_path(flags, search.hardware));
  VALORA_TRY(known, known_entries(flags, path, search.hardware));
  Journal journal(path, search.hardware, known, clock);
  VALORA_CHECK(journal.write());  // fail early if the file is not writable
  std::vector<kernels::TunedShape> tuned;
  size_t done = 0;
  {
    ProgressBar bar;
    tuned =
        kernels::tune(search.shapes, kernels::TileTable(known), search.measure, clock,
                      flags.seconds_or_default(), [&](const kernels::TuneProgress& progress) {
                        if (progress.last) journal.add(*progress.last);
                        if (progress.last)
                          bar.show(progress.done, progress.total, describe(progress.last->shape));
                        done = static_cast<size_t>(progress.done);
                      });
  }
  VALORA_CHECK(journal.write());
  fmt::print("{} shapes measured now\n", tuned.size());
  print_gains(tuned);
  if (done < search.shapes.size())
    fmt::print(
        "{} shapes are not measured and use the nearest measured one; continue with --resume\n",
        search.shapes.size() - done);
  fmt::print("written to {}\n", path);
  return {};
}

Status tune_cpu(const TuneFlags& flags) {
  VALORA_CHECK(kernels::select_isa());
  if (threads_for_tiles(flags) > 0) at::set_num_threads(threads_for_tiles(flags));
  VALORA_TRY(space, space_of(flags));
  const RealClock clock;
  kernels::TileProfiler profiler(clock, ops::torch_parallel());
  const Search search{kernels::this_hardware(), shapes_to_tune(space),
                      [&](const kernels::ProductShape& shape, const kernels::Tile& tile) {
                        return profiler.seconds(shape, std::get<kernels::CpuTile>(tile));
                      }};
  fmt::print("{} shapes of {} sizes of linears and ranks {}, {}, {}, {} threads\n",
             search.shapes.size(), space.linears.size() + space.others.size(),
             fmt::join(flags.ranks, ", "), space.float32 ? "float32" : "bfloat16",
             kernels::isa_name(space.isa), at::get_num_threads());
  std::fflush(stdout);
  return run(flags, search, clock);
}

Status tune_gpu(const TuneFlags& flags) {
  if (flags.engine.dtype == ComputeDtype::kFloat32)
    return invalid("--dtype float32 has no tiles to choose on GPUs; use bfloat16 or float16");
  if (flags.engine.tensor_parallel_size > 1)
    return invalid("--tensor-parallel-size is not supported on GPUs");
  VALORA_TRY(device, find_device(flags.engine.device));
  VALORA_TRY(space, cuda_space_of(flags));
  const RealClock clock;
  const auto profiler = ops::LoraProfiler::make(device, clock);
  if (!profiler) return unprocessable("--device cuda: this build has no CUDA kernels", "device");
  const Search search{hardware_of(device), shapes_to_tune(space),
                      [&](const kernels::ProductShape& shape, const kernels::Tile& tile) {
                        return profiler->seconds(shape, std::get<kernels::CudaTile>(tile));
                      }};
  fmt::print("{} shapes of low-rank products and merges, ranks {}, {}\n", search.shapes.size(),
             fmt::join(flags.ranks, ", "), search.hardware.text());
  std::fflush(stdout);
  return run(flags, search, clock);
}

}  // namespace

Status tune_tiles(const TuneFlags& flags) {
  VALORA_CHECK(check_tiles(flags));
  return flags.on_gpu() ? tune_gpu(flags) : tune_cpu(flags);
}

}  // namespace valora::cli
