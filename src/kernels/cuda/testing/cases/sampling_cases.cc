// Logits are rounded to a dtype to produce ties; the kernels read only float.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/cuda/sampling.h"
#include "kernels/cuda/testing/cases/cases.h"
#include "kernels/cuda/testing/report.h"

namespace valora::kernels::cuda {
namespace {

constexpr double kSumError = 1e-12;  // relative error of sums in double

struct Rows {
  std::string name;
  int32_t stride = 0;
  std::vector<float> logits;  // [rows, stride]
  std::vector<CandidateQuery> queries;
  bool all_lists = true;  // no list is left out because of ties
};

bool is_allowed(const CandidateQuery& query, int32_t id) {
  const auto word = static_cast<size_t>(id / 32);
  return query.allowed.empty() ||
         (word < query.allowed.size() && (query.allowed[word] >> (id % 32) & 1) != 0);
}

// The other tokens in [begin, end) of the row, best first.
std::vector<Candidate> others_of(const Rows& rows, const CandidateQuery& query, int32_t begin,
                                 int32_t end) {
  std::vector<Candidate> others;
  for (int32_t id = begin; id < end; ++id) {
    const float logit = rows.logits[static_cast<size_t>(query.row * rows.stride + id)];
    if (logit == -INFINITY || !is_allowed(query, id)) continue;
    if (!std::binary_search(query.listed.begin(), query.listed.end(), id))
      others.push_back({logit, id});
  }
  std::sort(others.begin(), others.end(), better);
  return others;
}

bool near(double a, double b) { return std::abs(a - b) <= kSumError * std::abs(b); }

// Describes what is wrong with the sums over tokens [begin, end); empty if nothing is.
std::string fault_of(const PartSums& got, const Rows& rows, const CandidateQuery& query,
                     int32_t begin, int32_t end) {
  const float* row = rows.logits.data() + query.row * rows.stride;
  const bool numbers = std::all_of(row + begin, row + end, [](float x) { return x < INFINITY; });
  if (got.numbers != (numbers ? 1 : 0)) return "numbers";
  if (!numbers) return "";
  const std::vector<Candidate> others = others_of(rows, query, begin, end);
  if (got.count != static_cast<int32_t>(others.size())) return "count";
  if (others.empty()) return got.best == -1 && got.sum == 0 && got.scaled_sum == 0 ? "" : "none";
  if (got.best != others[0].id || got.largest != others[0].logit)
    return "best " + std::to_string(got.best) + ", not " + std::to_string(others[0].id);
  double sum = 0, scaled_sum = 0;
  for (const Candidate& c : others) {
    const double below = static_cast<double>(c.logit) - others[0].logit;
    sum += query.sum ? std::exp(below) : 0;
    scaled_sum += query.temperature > 0 ? std::exp(below / query.temperature) : 0;
  }
  if (!near(got.sum, sum)) return "sum";
  return near(got.scaled_sum, scaled_sum) ? "" : "scaled sum";
}

// False if a list may be left out because it could exceed its capacity: with ties, if many wanted
// tokens are in the same groups, or if one of 2,048 bins of evenly spread logits holds more tokens
// than the capacity leaves besides the wanted ones.
bool must_be_listed(const Rows& rows, const CandidateQuery& query, size_t others) {
  constexpr size_t kFewInBins = size_t{2048} * 32;
  if (others <= static_cast<size_t>(candidate_room(query.wanted))) return others > 0;
  const auto groups = static_cast<size_t>((query.vocab + kPartTokens - 1) / kPartTokens) * 256;
  return rows.all_lists && others <= kFewInBins &&
         8 * static_cast<size_t>(query.wanted) <= std::min(groups, others);
}

std::string fault_of_list(std::vector<Candidate> got, const Rows& rows,
                          const CandidateQuery& query) {
  const std::vector<Candidate> others = others_of(rows, query, 0, query.vocab);
  if (query.wanted <= 1) return got.empty() ? "" : "a list that is not wanted";
  if (got.empty()) return must_be_listed(rows, query, others.size()) ? "no list" : "";
  if (got.size() < std::min<size_t>(query.wanted, others.size())) return "too few in the list";
  std::sort(got.begin(), got.end(), better);
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i].id != others[i].id || got[i].logit != others[i].logit)
      return "list [" + std::to_string(i) + "] " + std::to_string(got[i].id) + ", not " +
             std::to_string(others[i].id);
  if (got.size() < others.size() && others[got.size()].logit == got.back().logit)
    return "an equal logit is not in the list";
  return "";
}

// The tables of a call and memory for its results.
class Arrays {
 public:
  explicit Arrays(const Rows& rows) {
    int32_t best = 0, wanting = 0, widest = 1;
    std::vector<CandidateRow> table;
    std::vector<int32_t> listed;
    std::vector<uint32_t> allowed;
    for (const CandidateQuery& q : rows.queries) {
      CandidateRow row;
      row.row = q.row, row.vocab = q.vocab, row.wanted = q.wanted;
      row.scale = q.temperature > 0 ? 1 / q.temperature : 0, row.sum = q.sum ? 1 : 0;
      row.listed_begin = static_cast<int32_t>(listed.size());
      row.listed = static_cast<int32_t>(q.listed.size());
      listed.insert(listed.end(), q.listed.begin(), q.listed.end());
      row.allowed_begin = static_cast<int32_t>(allowed.size());
      row.allowed_words = q.allowed.empty() ? -1 : static_cast<int32_t>(q.allowed.size());
      allowed.insert(allowed.end(), q.allowed.begin(), q.allowed.end());
      row.best_begin = best, row.most_best = candidate_room(q.wanted), best += row.most_best;
      row.groups_row = q.wanted > 1 ? wanting++ : 0;
      widest = std::max(widest, q.vocab);
      table.push_back(row);
    }
    rows_ = DeviceTable<CandidateRow>(table);
    listed_ids_ = DeviceTable<int32_t>(listed);
    allowed_ = DeviceTable<uint32_t>(allowed);
    call.stride = rows.stride;
    call.rows = static_cast<int32_t>(table.size());
    call.parts = (widest + kPartTokens - 1) / kPartTokens;
    call.tables = {rows_.data(), listed_ids_.data(), allowed_.data()};
    call.results = {place<RowSums>(sums, table.size()), place<float>(listed_logits, listed.size()),
                    place<Candidate>(list, static_cast<size_t>(best)),
                    place<PartSums>(parts, table.size() * static_cast<size_t>(call.parts))};
    call.workspace = place<float>(groups, candidate_workspace(wanting, call.parts));
    table_ = std::move(table);
  }
  const CandidateRow& row(size_t i) const { return table_[i]; }
  bool guards_intact() const {
    return sums.guards_intact() && listed_logits.guards_intact() && list.guards_intact() &&
           parts.guards_intact() && groups.guards_intact();
  }

  CandidateCall call;
  DeviceMemory sums{0}, listed_logits{0}, list{0}, parts{0}, groups{0};

 private:
  template <typename T>
  static T* place(DeviceMemory& memory, size_t count) {
    memory = DeviceMemory(count * sizeof(T));
    return reinterpret_cast<T*>(memory.data());
  }
  std::vector<CandidateRow> table_;
  DeviceTable<CandidateRow> rows_{{}};
  DeviceTable<int32_t> listed_ids_{{}};
  DeviceTable<uint32_t> allowed_{{}};
};

template <typename T>
std::vector<T> values_of(const DeviceMemory& memory) {
  const std::vector<std::byte> bytes = memory.download();
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void rows_case(Group& group, const Rows& rows) {
  double work = 0;
  for (const CandidateQuery& q : rows.queries) work += q.vocab;
  if (!group.takes(work)) return;
  Arrays arrays(rows);
  const DeviceTable<float> logits(rows.logits);
  arrays.call.logits = logits.data();
  if (!group.launched(rows.name, find_candidates(arrays.call, nullptr))) return;
  const auto sums = values_of<RowSums>(arrays.sums);
  const auto parts = values_of<PartSums>(arrays.parts);
  const auto list = values_of<Candidate>(arrays.list);
  const auto listed = values_of<float>(arrays.listed_logits);
  std::string fault = arrays.guards_intact() ? "" : "wrote outside of the results";
  for (size_t r = 0; r < rows.queries.size() && fault.empty(); ++r) {
    const CandidateQuery& query = rows.queries[r];
    const CandidateRow& row = arrays.row(r);
    fault = fault_of(sums[r].all, rows, query, 0, query.vocab);
    for (int32_t begin = 0; begin < query.vocab && fault.empty(); begin += kPartTokens)
      fault = fault_of(parts[r * arrays.call.parts + begin / kPartTokens], rows, query, begin,
                       std::min(query.vocab, begin + kPartTokens));
    for (size_t i = 0; i < query.listed.size() && fault.empty(); ++i) {
      const float want = rows.logits[query.row * rows.stride + query.listed[i]];
      const float got = listed[row.listed_begin + i];
      if (got != want && !(std::isnan(got) && std::isnan(want))) fault = "a listed token's logit";
    }
    const auto first = list.begin() + row.best_begin;
    if (fault.empty() && sums[r].all.numbers != 0)
      fault = fault_of_list({first, first + sums[r].best_count}, rows, query);
    if (!fault.empty()) fault += " of row " + std::to_string(r);
  }
  group.check(rows.name, fault.empty(), fault);
}

std::vector<int32_t> some_tokens(Random& random, int32_t vocab, int64_t count) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(random.below(vocab)));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::vector<uint32_t> some_words(Random& random, int32_t vocab, int64_t odds) {
  std::vector<uint32_t> words(static_cast<size_t>(vocab + 31) / 32);
  if (random.below(4) == 0) words.resize(1 + words.size() / 2);  // later tokens are not allowed
  for (uint32_t& word : words)
    for (int bit = 0; bit < 32; ++bit) word |= uint32_t{random.below(odds) == 0} << bit;
  return words;
}

// Consecutive rows with the same vocabulary, one query each.
Rows random_rows(Random& random, Dtype dtype, int32_t rows, int32_t vocab) {
  Rows out;
  out.name = std::to_string(rows) + " of " + std::to_string(vocab) + " in " + name_of(dtype);
  out.stride = vocab + static_cast<int32_t>(random.below(3));
  for (int32_t r = 0; r < rows; ++r) {
    const float size = random.uniform(0.1f, 30);
    for (const float x : random.values(static_cast<size_t>(out.stride), dtype, size))
      out.logits.push_back(random.below(50) == 0 ? -INFINITY : x);
    CandidateQuery q;
    q.row = rows - 1 - r;
    q.vocab = vocab - static_cast<int32_t>(random.below(std::min(vocab, 40)));
    q.wanted = random.below(3) == 0 ? 1 : static_cast<int32_t>(random.between(2, 300));
    q.sum = random.below(2) == 0;
    q.temperature = random.below(2) == 0 ? random.uniform(0.05f, 2) : 0;
    if (random.below(2) == 0) q.listed = some_tokens(random, q.vocab, random.below(300));
    if (random.below(2) == 0) q.allowed = some_words(random, q.vocab, random.between(1, 40));
    out.queries.push_back(std::move(q));
  }
  out.all_lists = dtype == Dtype::kFloat;
  return out;
}

Rows one_row(const std::string& name, std::vector<float> logits, int32_t wanted) {
  Rows rows;
  rows.name = name;
  rows.stride = static_cast<int32_t>(logits.size());
  rows.logits = std::move(logits);
  CandidateQuery q;
  q.vocab = rows.stride, q.wanted = wanted, q.sum = true, q.temperature = 0.7;
  rows.queries = {q};
  return rows;
}

void special_cases(Group& group, int32_t wanted) {
  const std::string of = " wanted " + std::to_string(wanted);
  rows_case(group, one_row("one token," + of, {2}, wanted));
  rows_case(group, one_row("none," + of, std::vector<float>(5000, -INFINITY), wanted));
  Rows equal = one_row("equal ones," + of, std::vector<float>(9000, 1.5f), wanted);
  equal.all_lists = false;
  rows_case(group, equal);
  std::vector<float> wide(5000, -3e38f);
  wide[4999] = wide[17] = 3e38f;
  Rows far = one_row("beyond each other," + of, wide, wanted);
  far.all_lists = false;
  rows_case(group, far);
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> x(9000, 1);
    x[8192] = bad;
    rows_case(group, one_row("not a number," + of, x, wanted));
    Rows masked = one_row("not a number, not allowed," + of, x, wanted);
    masked.queries[0].allowed = {7};
    rows_case(group, masked);
  }
  Rows listed = one_row("all listed," + of, std::vector<float>(4100, 1), wanted);
  for (int32_t id = 0; id < 4100; ++id) listed.queries[0].listed.push_back(id);
  rows_case(group, listed);
  Rows masked = one_row("none allowed," + of, std::vector<float>(4100, 1), wanted);
  masked.queries[0].allowed = {0};
  rows_case(group, masked);
}

}  // namespace

bool test_sampling(Dtype dtype, const Selection& selection) {
  Group group(std::string("sampling ") + name_of(dtype), selection);
  for (const int32_t wanted : {1, 2, 50}) special_cases(group, wanted);
  Random fixed(5);
  for (const int32_t vocab : {1, 31, 256, 4095, 4096, 4097, 12289})
    rows_case(group, random_rows(fixed, dtype, 3, vocab));
  for (const int32_t vocab : {32000, 151936, 262144})
    rows_case(group, random_rows(fixed, dtype, 2, vocab));
  rows_case(group, random_rows(fixed, dtype, 32, 151936));
  Random random(selection.seed);
  for (int i = 0; i < selection.random_cases; ++i) {
    const auto rows = static_cast<int32_t>(random.between(1, 4));
    const auto vocab = static_cast<int32_t>(random.between(1, i % 4 == 0 ? 13000 : 700));
    rows_case(group, random_rows(random, dtype, rows, vocab));
  }
  return group.finish();
}

}  // namespace valora::kernels::cuda
