// The vision applications of VaLoRA §6 as workloads: visual retrieval, whose users ask several
// questions about a picture, and video analytics, whose cameras send chunks of frames. Sizes are
// from the paper. Deterministic for a seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/sim/workload.h"

namespace valora::sim {

// Each arrival of the workload starts a conversation about a picture; prompt_min and prompt_max
// bound the tokens of a question.
struct RetrievalConfig {
  WorkloadConfig first;      // the first questions
  int questions = 3;         // per conversation
  double think = 2;          // mean seconds from an answer to the next question, exponential
  int picture_tokens = 256;  // per picture; 0: no picture
};

// A further question arrives after the previous answer has ended. A conversation ends before it
// exceeds max_tokens. Errors are those of make_workload(), and kInvalidArgument for a field out of
// range.
Result<std::vector<Arrival>> make_retrieval(const RetrievalConfig& config,
                                            std::span<const TraceRow> trace = {});

// Cameras: each sends a chunk of frames per period.
struct StreamConfig {
  int streams = 1;
  double period = 1;         // seconds between chunks of a stream; phases are random
  int frames = 6;            // pictures sampled from a chunk of 30 frames
  int frame_tokens = 256;    // per picture
  int question_tokens = 16;  // after the frames
  // 1: answered by a task head. VaLoRA's language-model head takes 5 to 10 (§6.2).
  int answer_min = 1, answer_max = 1;
  int adapters = 1;  // stream i uses adapter i % adapters; 0: the base model
  // Requests about each chunk, which arrive together. They share its frames and question, then have
  // an invocation each; skill s uses adapter (i + s) % adapters. 0: one request, without
  // invocation.
  int skills = 0;
  int invocation_tokens = 4;
  bool activated = false;  // the adapters act from the invocation on (activated LoRA)
  double seconds = 60;
  uint32_t seed = 1;
};

// In order of time, from 0 to `seconds`. kInvalidArgument: a field out of range, more skills than
// adapters, or activated adapters without skills.
Result<std::vector<Arrival>> make_streams(const StreamConfig& config);

// Turns the requests into a closed loop of `clients` users, each of whom sends the next request
// when the previous answer has ended. Not for workloads with conversations. kInvalidArgument: no
// clients.
Result<std::vector<Arrival>> close_loop(std::vector<Arrival> arrivals, int clients);

}  // namespace valora::sim
