#include "ops/vocabulary/logit_candidates.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/sampling.h"
#include "ops/device/cuda_types.h"
#include "ops/device/dispatch.h"
#include "ops/step/device_tables.h"

namespace valora::ops {
namespace {

namespace cuda = kernels::cuda;
using kernels::Candidate;
using kernels::CandidateQuery;
using kernels::PartSums;

int32_t parts_of(int32_t vocab) {
  return (vocab + kernels::kPartTokens - 1) / kernels::kPartTokens;
}

size_t power_above(size_t bytes) { return std::bit_ceil(std::max<size_t>(bytes, 4096)); }

// Offsets of arrays of several types in one allocation.
class Layout {
 public:
  template <typename T>
  size_t add(size_t count) {
    const size_t at = (bytes_ + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) *
                      alignof(std::max_align_t);
    bytes_ = at + count * sizeof(T);
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

void grow(at::Tensor& memory, size_t bytes, const at::TensorOptions& options) {
  if (!memory.defined() || memory.numel() < static_cast<int64_t>(bytes))
    memory = at::empty({static_cast<int64_t>(power_above(bytes))}, options.dtype(at::kByte));
}

template <typename T>
T* at_offset(const at::Tensor& memory, size_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(memory.data_ptr()) + offset);
}

}  // namespace

struct LogitCandidates::State {
  std::vector<cuda::CandidateRow> rows;
  std::vector<bool> wants_parts;
  std::vector<int32_t> listed;
  std::vector<uint32_t> allowed;
  int32_t best = 0, lists = 0, parts = 1;  // capacity of a list, number of lists, parts per row
  DeviceTables tables;
  at::Tensor device, host, workspace;
  // Offsets in both `device` and `host`.
  size_t sums_at = 0, listed_at = 0, best_at = 0, parts_at = 0;

  void clear() {
    rows.clear(), wants_parts.clear(), listed.clear(), allowed.clear();
    best = lists = 0, parts = 1;
    tables.clear();
  }
  void add(const CandidateQuery& query);
  cuda::CandidateTables copy_tables(at::Device to);
};

void LogitCandidates::State::add(const CandidateQuery& query) {
  cuda::CandidateRow row;
  row.row = query.row;
  row.scale = query.temperature > 0 ? 1 / query.temperature : 0;
  row.vocab = query.vocab;
  row.wanted = query.wanted;
  row.sum = query.sum ? 1 : 0;
  row.listed_begin = static_cast<int32_t>(listed.size());
  row.listed = static_cast<int32_t>(query.listed.size());
  listed.insert(listed.end(), query.listed.begin(), query.listed.end());
  if (!query.allowed.empty()) {
    row.allowed_begin = static_cast<int32_t>(allowed.size());
    row.allowed_words = static_cast<int32_t>(query.allowed.size());
    allowed.insert(allowed.end(), query.allowed.begin(), query.allowed.end());
  }
  row.best_begin = best;
  row.most_best = cuda::candidate_room(query.wanted);
  best += row.most_best;
  if (query.wanted > 1) row.groups_row = lists++;
  parts = std::max(parts, parts_of(query.vocab));
  rows.push_back(row);
  wants_parts.push_back(query.parts);
}

cuda::CandidateTables LogitCandidates::State::copy_tables(at::Device to) {
  const size_t rows_at = tables.add(rows), ids_at = tables.add(listed),
               words_at = tables.add(allowed);
  tables.reserve(power_above(words_at + allowed.size() * sizeof(uint32_t)));
  tables.copy_to(to);
  return {tables.at<cuda::CandidateRow>(rows_at), tables.at<int32_t>(ids_at),
          tables.at<uint32_t>(words_at)};
}

bool LogitCandidates::serves(at::Device device) {
  return target_of(at::kFloat, device) == Target::kCuda;
}

LogitCandidates::LogitCandidates() : state_(std::make_unique<State>()) {}
LogitCandidates::~LogitCandidates() = default;

void LogitCandidates::find(const at::Tensor& logits,
                           std::span<const CandidateQuery* const> queries) {
  State& s = *state_;
  s.clear();
  for (const CandidateQuery* query : queries) s.add(*query);
  Layout layout;
  s.sums_at = layout.add<cuda::RowSums>(s.rows.size());
  s.listed_at = layout.add<float>(s.listed.size());
  s.best_at = layout.add<Candidate>(static_cast<size_t>(s.best));
  const size_t without_parts = layout.bytes();
  s.parts_at = layout.add<PartSums>(s.rows.size() * static_cast<size_t>(s.parts));
  grow(s.device, layout.bytes(), logits.options());
  grow(s.host, layout.bytes(), at::TensorOptions().pinned_memory(true));
  const size_t floats = cuda::candidate_workspace(s.lists, s.parts);
  grow(s.workspace, floats * sizeof(float), logits.options());

  cuda::CandidateCall call;
  call.logits = logits.const_data_ptr<float>();
  call.stride = logits.size(1);
  call.rows = static_cast<int32_t>(s.rows.size());
  call.parts = s.parts;
  call.tables = s.copy_tables(logits.device());
  call.results = {
      at_offset<cuda::RowSums>(s.device, s.sums_at), at_offset<float>(s.device, s.listed_at),
      at_offset<Candidate>(s.device, s.best_at), at_offset<PartSums>(s.device, s.parts_at)};
  call.workspace = at_offset<float>(s.workspace, 0);
  check_launch(cuda::find_candidates(call, stream_of(logits)), "find_candidates");
  // Parts come last, so that they are not copied if no row wants them.
  const auto bytes = static_cast<int64_t>(
      std::ranges::count(s.wants_parts, true) > 0 ? layout.bytes() : without_parts);
  s.host.narrow(0, 0, bytes).copy_(s.device.narrow(0, 0, bytes), /*non_blocking=*/true);
}

kernels::Candidates LogitCandidates::found(size_t i) const {
  const State& s = *state_;
  const cuda::CandidateRow& row = s.rows[i];
  const cuda::RowSums& sums = at_offset<cuda::RowSums>(s.host, s.sums_at)[i];
  kernels::Candidates found;
  found.all = sums.all;
  found.listed = {at_offset<float>(s.host, s.listed_at) + row.listed_begin,
                  static_cast<size_t>(row.listed)};
  found.best = {at_offset<Candidate>(s.host, s.best_at) + row.best_begin,
                static_cast<size_t>(sums.best_count)};
  if (s.wants_parts[i])
    found.parts = {at_offset<PartSums>(s.host, s.parts_at) + i * static_cast<size_t>(s.parts),
                   static_cast<size_t>(parts_of(row.vocab))};
  return found;
}

}  // namespace valora::ops
