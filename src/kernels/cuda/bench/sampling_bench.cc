#include "kernels/cuda/sampling.h"

#include <string>

#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr int32_t kVocabulary = 151936;  // Qwen2.5's

struct Asked {
  const char* name;
  int32_t wanted, sum;
  double scale;
};
constexpr Asked kAsked[] = {{"greedy", 1, 0, 0},
                            {"greedy, log probabilities", 1, 1, 0},
                            {"top_k 20", 24, 0, 0},
                            {"top_p", 512, 0, 1 / 0.7}};

void bench_rows(int32_t rows, const Asked& asked, const Figures& figures) {
  const double bytes = 4.0 * rows * kVocabulary;
  const int sets = rotations(static_cast<size_t>(bytes), 64);
  std::vector<DeviceValues> logits;
  for (int i = 0; i < sets; ++i)
    logits.emplace_back(Random(i).values(static_cast<size_t>(rows) * kVocabulary, Dtype::kFloat, 9),
                        Dtype::kFloat);
  CandidateCall call;
  call.stride = kVocabulary;
  call.rows = rows;
  call.parts = (kVocabulary + kPartTokens - 1) / kPartTokens;
  std::vector<CandidateRow> table(static_cast<size_t>(rows));
  const int32_t room = candidate_room(asked.wanted);
  for (int32_t i = 0; i < rows; ++i) {
    CandidateRow& row = table[static_cast<size_t>(i)];
    row.row = row.groups_row = i;
    row.vocab = kVocabulary, row.wanted = asked.wanted, row.sum = asked.sum;
    row.scale = asked.scale, row.best_begin = i * room, row.most_best = room;
  }
  const DeviceTable<CandidateRow> on_device(table);
  const auto count = static_cast<size_t>(rows);
  const DeviceMemory sums(count * sizeof(RowSums)),
      list(count * static_cast<size_t>(room) * sizeof(Candidate)),
      parts(count * static_cast<size_t>(call.parts) * sizeof(PartSums)),
      workspace(candidate_workspace(rows, call.parts) * sizeof(float));
  call.tables.rows = on_device.data();
  call.results = {reinterpret_cast<RowSums*>(sums.data()), nullptr,
                  reinterpret_cast<Candidate*>(list.data()),
                  reinterpret_cast<PartSums*>(parts.data())};
  call.workspace = reinterpret_cast<float*>(workspace.data());
  const double seconds = seconds_per_launch(
      [&](int i, Stream stream) {
        CandidateCall with = call;
        with.logits = static_cast<const float*>(logits[static_cast<size_t>(i)].data());
        return find_candidates(with, stream);
      },
      sets);
  print_result("candidates, " + std::string(asked.name) + ", rows " + std::to_string(rows), seconds,
               bytes, 0, figures);
}

}  // namespace

void bench_sampling(const Figures& figures) {
  for (const int32_t rows : {1, 8, 32, 128})
    for (const Asked& asked : kAsked) bench_rows(rows, asked, figures);
}

}  // namespace valora::kernels::cuda
