// Extracts what a host-side sampler needs from rows of logits (kernels/types/candidates.h), in two
// launches.
#pragma once

#include "kernels/cuda/types.h"
#include "kernels/types/candidates.h"

namespace valora::kernels::cuda {

// A CandidateQuery. The *_begin fields are offsets into the arrays of the tables and results.
struct CandidateRow {
  int64_t row = 0;   // of the logits
  double scale = 0;  // 1 / temperature; 0: no scaled sums
  int32_t vocab = 0;
  int32_t wanted = 1;
  int32_t sum = 0;
  int32_t listed_begin = 0, listed = 0;
  int32_t allowed_begin = 0, allowed_words = -1;  // -1: all tokens are allowed
  int32_t best_begin = 0, most_best = 0;  // capacity of the list, if more than one is wanted
  int32_t groups_row = 0;                 // workspace row, if more than one is wanted
};

struct CandidateTables {
  const CandidateRow* rows = nullptr;
  const int32_t* listed = nullptr;
  const uint32_t* allowed = nullptr;
};

struct RowSums {
  PartSums all;
  int32_t best_count = 0;  // number of tokens in the list
  int32_t unused = 0;
};
struct CandidateResults {
  RowSums* rows = nullptr;  // [rows]
  float* listed = nullptr;  // logits of the listed tokens
  Candidate* best = nullptr;
  PartSums* parts = nullptr;  // [rows, parts]; parts beyond a row's vocabulary are not written
};

struct CandidateCall {
  const float* logits = nullptr;  // rows of `stride` elements
  int64_t stride = 0;
  int32_t rows = 0, parts = 0;  // parts: for the largest vocabulary
  CandidateTables tables;
  CandidateResults results;
  float* workspace = nullptr;  // candidate_workspace() floats
};

// best: number of rows that want more than one token.
size_t candidate_workspace(int32_t best, int32_t parts);
// The capacity that a list of `wanted` tokens needs so that it is seldom left out.
int32_t candidate_room(int32_t wanted);
Status find_candidates(const CandidateCall& call, Stream stream);

}  // namespace valora::kernels::cuda
