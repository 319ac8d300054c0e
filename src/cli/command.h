// The subcommands of `valora`. Each function adds one to the app. Parsing then sets `run` to the
// function of the given command, which returns the exit status.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>

#include "api/options.h"

namespace valora::cli {

// Prints "error: …" to stderr and returns the exit status.
int fail(const Error& error);

void add_serve(CLI::App& app, std::function<int()>& run);
void add_generate(CLI::App& app, std::function<int()>& run);
void add_inspect(CLI::App& app, std::function<int()>& run);
void add_eval(CLI::App& app, std::function<int()>& run);
void add_fuse(CLI::App& app, std::function<int()>& run);
void add_tune(CLI::App& app, std::function<int()>& run);
void add_bench(CLI::App& app, std::function<int()>& run);
void add_bench_ops(CLI::App& bench, std::function<int()>& run);
void add_bench_serve(CLI::App& bench, std::function<int()>& run);
void add_bench_memory(CLI::App& bench, std::function<int()>& run);

// The options that serve, generate and eval share: model, dtype, device, kernels, policy, threads,
// lengths, memory.
void add_engine_flags(CLI::App& command, EngineOptions& options);

}  // namespace valora::cli
