// A thread block has a value head of a span, with its whole matrix, and goes through the rows in
// groups: all warps prepare the rows of a group, then the rows follow one another without a
// barrier, because a column is in one warp, then all warps norm and gate them.
#include <algorithm>

#include "kernels/cuda/delta/matrix.cuh"
#include "kernels/cuda/delta/state.cuh"
#include "kernels/cuda/device/launch.cuh"
#include "kernels/cuda/device/reduce.cuh"
#include "kernels/cuda/device/shared.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kMostColumns = 128;  // of a thread block at a time
constexpr int kMaxThreads = kMostColumns * kLanesOfColumn;
constexpr int kColumnsOfWarp = kWarpSize / kLanesOfColumn;
constexpr int kMostRows = 16;             // of a group
constexpr size_t kGroupBytes = 40 << 10;  // of shared memory, if more than one row fits
constexpr float kLengthEps = 1e-6f;       // when normalising queries and keys
constexpr int kScalars = 3;               // per row

template <typename T>
struct Arguments {
  StatePool states;
  const T *x, *qkv, *z, *b, *a;
  int64_t x_stride, z_stride, b_stride, a_stride;
  const float *rate, *bias;
  const T* norm;
  T* out;
  StateTables tables;
  float eps;
  int channels, taps, key_heads, value_heads, key_dim, value_dim;
  int rows;     // of a group
  int padded;   // key_dim with padding
  int columns;  // value_dim with padding to whole tiles
};

// The rows of a group in shared memory.
struct Group {
  float *keys, *queries;             // [rows, padded]
  float* values;                     // [rows, columns]: values, then outputs
  float *decays, *rates, *products;  // [rows]; products: of key and query
};

template <typename T>
__device__ Group group_in(unsigned char* shared, const Arguments<T>& a) {
  Group g{};
  g.keys = reinterpret_cast<float*>(shared);
  g.queries = g.keys + a.rows * a.padded;
  g.values = g.queries + a.rows * a.padded;
  g.decays = g.values + a.rows * a.columns;
  g.rates = g.decays + a.rows;
  g.products = g.rates + a.rows;
  return g;
}

__device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

// A warp prepares row r of the group, token `token`: unit keys and queries, the latter divided by
// √key_dim.
template <typename T>
__device__ void prepare_row(const Arguments<T>& a, int head, int64_t token, int r, const Group& g) {
  const int lane = threadIdx.x % kWarpSize, key_head = head / (a.value_heads / a.key_heads);
  const T* query = a.qkv + token * a.channels + static_cast<int64_t>(key_head) * a.key_dim;
  const T* key = query + static_cast<int64_t>(a.key_heads) * a.key_dim;
  const T* value = a.qkv + token * a.channels + 2 * static_cast<int64_t>(a.key_heads) * a.key_dim +
                   static_cast<int64_t>(head) * a.value_dim;
  float *const keys = g.keys + r * a.padded, *const queries = g.queries + r * a.padded;
  float of_key = 0, of_query = 0, of_both = 0;
  for (int i = lane; i < a.padded; i += kWarpSize) {
    const float k = i < a.key_dim ? to_float(key[i]) : 0.0f;
    const float q = i < a.key_dim ? to_float(query[i]) : 0.0f;
    of_key += k * k, of_query += q * q, of_both += k * q;
    keys[i] = k, queries[i] = q;
  }
  const float by_key = rsqrtf(warp_sum(of_key) + kLengthEps);
  const float by_query =
      rsqrtf(warp_sum(of_query) + kLengthEps) * rsqrtf(static_cast<float>(a.key_dim));
  const float product = warp_sum(of_both) * by_key * by_query;
  for (int i = lane; i < a.padded; i += kWarpSize) keys[i] *= by_key, queries[i] *= by_query;
  for (int i = lane; i < a.columns; i += kWarpSize)
    g.values[r * a.columns + i] = i < a.value_dim ? to_float(value[i]) : 0.0f;
  if (lane != 0) return;
  g.products[r] = product;
  g.decays[r] =
      expf(-a.rate[head] * softplus(to_float(a.a[token * a.a_stride + head]) + a.bias[head]));
  g.rates[r] = 1.0f / (1.0f + expf(-to_float(a.b[token * a.b_stride + head])));
}

// Row r of the group for the columns of this warp. Replaces values by outputs.
template <typename M>
__device__ void run_row(M& matrix, const Group& g, int r, int padded, int columns) {
  const int lane = threadIdx.x % kWarpSize, first = threadIdx.x / kWarpSize * kColumnsOfWarp;
  const float *const key = g.keys + r * padded, *const query = g.queries + r * padded;
  const float decay = g.decays[r];
  for (int at = first; at < columns; at += blockDim.x / kLanesOfColumn) {
    const int column = at + lane % kColumnsOfWarp;
    const bool owner = lane < kColumnsOfWarp;  // of the column's value and output
    DeltaSums sums = matrix.sums(key, query, column);
#pragma unroll
    for (int apart = kColumnsOfWarp; apart < kWarpSize; apart *= 2) {
      sums.by_key += __shfl_xor_sync(kAllLanes, sums.by_key, apart);
      sums.by_query += __shfl_xor_sync(kAllLanes, sums.by_query, apart);
    }
    float* const value = g.values + r * columns + column;
    float delta = owner ? g.rates[r] * (*value - decay * sums.by_key) : 0.0f;
    delta = __shfl_sync(kAllLanes, delta, lane % kColumnsOfWarp);
    matrix.update(decay, delta, key, column);
    if (owner) *value = decay * sums.by_query + delta * g.products[r];
  }
}

// A warp norms and gates row r of the group.
template <typename T>
__device__ void finish_row(const Arguments<T>& a, int head, int64_t token, int r, const Group& g) {
  const int lane = threadIdx.x % kWarpSize;
  const float* const values = g.values + r * a.columns;
  float squares = 0;
  for (int i = lane; i < a.value_dim; i += kWarpSize) squares += values[i] * values[i];
  const float factor = rsqrtf(warp_sum(squares) / static_cast<float>(a.value_dim) + a.eps);
  const int64_t place = static_cast<int64_t>(head) * a.value_dim;
  const T* const z = a.z + token * a.z_stride + place;
  T* const out = a.out + token * a.value_heads * a.value_dim + place;
  for (int i = lane; i < a.value_dim; i += kWarpSize) {
    const float gate = to_float(z[i]);
    out[i] = from_float<T>(values[i] * factor * to_float(a.norm[i]) * gate / (1.0f + expf(-gate)));
  }
}

// Writes this block's share of the window after `rows` rows of the span; in place, each row is read
// before it is written.
template <typename T>
__device__ void write_window(const Arguments<T>& a, const WindowedRows<T>& rows, int list,
                             int after) {
  const int step = gridDim.y * blockDim.x;
  for (int channel = blockIdx.y * blockDim.x + threadIdx.x; channel < a.channels; channel += step)
    for (int j = 0; j < a.taps - 1; ++j) {
      const T* row = rows.row(after - a.taps + 1 + j);
      state_part<T>(a.states, a.tables.blocks, list, j)[channel] =
          row == nullptr ? from_float<T>(0.0f) : row[channel];
    }
}

// Rows [begin, end) of the span that begins at token span_begin.
template <typename T, typename M>
__device__ void run_rows(const Arguments<T>& a, int span_begin, int begin, int end, M& matrix,
                         const Group& g) {
  const int head = blockIdx.y, warp = threadIdx.x / kWarpSize, warps = blockDim.x / kWarpSize;
  for (int first = begin; first < end; first += a.rows) {
    const int rows = min(a.rows, end - first);
    const int64_t token = static_cast<int64_t>(span_begin) + first;
    for (int r = warp; r < rows; r += warps) prepare_row(a, head, token + r, r, g);
    __syncthreads();
#pragma unroll 1
    for (int r = 0; r < rows; ++r) run_row(matrix, g, r, a.padded, a.columns);
    __syncthreads();
    for (int r = warp; r < rows; r += warps) finish_row(a, head, token + r, r, g);
  }
}

// gridDim.x covers the spans, gridDim.y the value heads. kHeld: of Matrix.
template <typename T, int kHeld>
__global__ void __launch_bounds__(kMaxThreads, 1) gated_delta_kernel(Arguments<T> a) {
  wait_for_earlier_launch();
  VALORA_DYNAMIC_SHARED(shared);
  const DeviceStateSpan* const span = a.tables.spans + blockIdx.x;
  const int begin = span->begin, count = span->count, from = span->from, to = span->to;
  if (count == 0) return;
  const int head = blockIdx.y, lane = threadIdx.x % kWarpSize;
  const WindowedRows<T> inputs{a.x + begin * a.x_stride, a.x_stride, a.states,
                               a.tables.blocks,          from,       a.taps - 1};
  const auto matrix_of = [&](int list) {
    return list < 0 ? nullptr
                    : state_part<float>(a.states, a.tables.blocks, list, a.taps - 1 + head);
  };
  Matrix<kHeld> matrix(matrix_of(from), matrix_of(to), a.key_dim,
                       threadIdx.x / kWarpSize * kColumnsOfWarp + lane % kColumnsOfWarp, a.columns,
                       blockDim.x / kLanesOfColumn, lane / kColumnsOfWarp);
  const Group group = group_in(shared, a);
  int done = 0;
#pragma unroll 1
  for (int state = 0; state <= StateSpan::kMostKept; ++state) {  // those kept, then the last one
    const bool last = state == StateSpan::kMostKept;
    const int list = last ? to : span->kept[state], end = last ? count : span->after[state];
    if (list < 0) continue;
    run_rows(a, begin, done, end, matrix, group);
    matrix.write(matrix_of(list));
    write_window(a, inputs, list, end);
    done = end;
  }
}

template <typename T>
Arguments<T> arguments_of(const StateShape& shape, const StatePool& states, const DeltaRows& rows,
                          void* out, const StateTables& tables) {
  constexpr int kTile = static_cast<int>(kStateTile);
  Arguments<T> a{};
  a.states = states, a.tables = tables;
  a.x = static_cast<const T*>(rows.x.data), a.x_stride = rows.x.token_stride;
  a.qkv = static_cast<const T*>(rows.qkv);
  a.z = static_cast<const T*>(rows.z.data), a.z_stride = rows.z.token_stride;
  a.b = static_cast<const T*>(rows.b.data), a.b_stride = rows.b.token_stride;
  a.a = static_cast<const T*>(rows.a.data), a.a_stride = rows.a.token_stride;
  a.rate = rows.rate, a.bias = rows.bias;
  a.norm = static_cast<const T*>(rows.norm), a.eps = rows.eps;
  a.out = static_cast<T*>(out);
  a.channels = static_cast<int>(shape.channels), a.taps = static_cast<int>(shape.taps);
  a.key_heads = static_cast<int>(shape.key_heads);
  a.value_heads = static_cast<int>(shape.value_heads);
  a.key_dim = static_cast<int>(shape.key_dim), a.value_dim = static_cast<int>(shape.value_dim);
  a.columns = ceil_div(a.value_dim, kTile) * kTile;
  return a;
}

size_t row_bytes(int padded, int columns) {
  return sizeof(float) * static_cast<size_t>(2 * padded + columns + kScalars);
}

template <typename T, int kHeld>
Status run(Arguments<T> a, Stream stream) {
  a.padded = kHeld > 0 ? kLanesOfColumn * kHeld : ceil_div(a.key_dim, 4) * 4;
  const size_t bytes = row_bytes(a.padded, a.columns);
  a.rows = static_cast<int>(std::clamp<size_t>(kGroupBytes / bytes, 1, kMostRows));
  const dim3 grid(static_cast<unsigned>(a.tables.span_count), static_cast<unsigned>(a.value_heads));
  const int threads = std::min(a.columns, kMostColumns) * kLanesOfColumn;
  return launch(gated_delta_kernel<T, kHeld>, grid, threads, static_cast<size_t>(a.rows) * bytes,
                stream, a);
}

}  // namespace

Status gated_delta(Dtype dtype, const StateShape& shape, const StatePool& states,
                   const DeltaRows& rows, void* out, const StateTables& tables, Stream stream) {
  if (tables.span_count == 0) return cudaSuccess;
  return with_type(dtype, [&](auto type) {
    using T = decltype(type);
    const Arguments<T> a = arguments_of<T>(shape, states, rows, out, tables);
    if (a.columns > kMostColumns) return run<T, 0>(a, stream);
    if (a.key_dim <= 64) return run<T, 16>(a, stream);
    if (a.key_dim <= 128) return run<T, 32>(a, stream);
    return run<T, 0>(a, stream);
  });
}

}  // namespace valora::kernels::cuda
