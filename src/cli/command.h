// The subcommands of `valora` and what they share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/options.h"
#include "cli/options/parser.h"

namespace valora::cli {

// Exit status of fuse and eval if a task misses its floor.
inline constexpr int kFloorMissed = 3;

// Prints "error: …" to stderr and returns the exit status.
int fail(const Error& error);

// Each function adds one subcommand. Parsing sets `run` to the function of the command given, which
// returns the exit status.
void add_serve(Command app, std::function<int()>& run);
void add_generate(Command app, std::function<int()>& run);
void add_inspect(Command app, std::function<int()>& run);
void add_eval(Command app, std::function<int()>& run);
void add_fuse(Command app, std::function<int()>& run);
void add_quantize(Command app, std::function<int()>& run);
void add_tune(Command app, std::function<int()>& run);
void add_bench(Command app, std::function<int()>& run);
void add_bench_ops(Command bench, std::function<int()>& run);
void add_bench_serve(Command bench, std::function<int()>& run);
void add_bench_memory(Command bench, std::function<int()>& run);
void add_bench_memory_live(Command bench, std::function<int()>& run);
void add_bench_trace(Command bench, std::function<int()>& run);

// Options for the rounding of weights, inputs and KV, and for ranks: the engine options that change
// what steps cost.
void add_quantization_flag(Command command, EngineOptions& options);
void add_rounding_flags(Command command, EngineOptions& options);
void add_rank_flags(Command command, EngineOptions& options);
// Options shared by serve, generate and eval: model, dtype, device, kernels, policy, threads,
// lengths, memory, and the options above.
void add_engine_flags(Command command, EngineOptions& options, bool model_required = true);
// Options that exchange policies and memory features, for comparisons.
void add_experiment_flags(Command command, EngineOptions& options);

// Options of serve and generate for media without their own settings: JSON objects, for
// read_media_defaults().
struct MediaDefaultTexts {
  std::string processor, io;
};
void add_media_defaults(Command command, MediaDefaultTexts& texts);

}  // namespace valora::cli
