// Kernels that tools/check_code_objects must refuse, and some that it must not: Exact, Divides, and
// Multiplies, which is for the matrix unit of the one target that has one.
#include <hip/hip_runtime.h>

// More values at once than a thread of so large a block has registers for.
__global__ void __launch_bounds__(1024) Spills(float* p) {
  float v[140];
#pragma unroll
  for (int i = 0; i < 140; ++i) v[i] = p[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 140; ++i) p[(139 - i) * 2048 + threadIdx.x] = v[i] * v[(i * 7 + 3) % 140];
}

__global__ void LocalArray(float* p, int n) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = p[i];
  p[threadIdx.x] = v[n];
}

__global__ void Fuses(float* p, float a) { p[threadIdx.x] = p[threadIdx.x] * a + a; }

__global__ void Exact(float* p, float a) {
#pragma clang fp contract(off)
  p[threadIdx.x] = p[threadIdx.x] * a + a;
}

__global__ void Divides(long* p, int* q, long n, int m) {
  p[threadIdx.x] /= n;
  q[threadIdx.x] = (q[threadIdx.x] & 0xffff) / (m & 0xfff);
}

__global__ void Multiplies(int* p) {
#ifdef __gfx90a__
  using Int4 = int __attribute__((ext_vector_type(4)));
  const Int4 sums = __builtin_amdgcn_mfma_i32_16x16x16i8(p[0], p[1], Int4{0, 0, 0, 0}, 0, 0, 0);
  p[threadIdx.x] = sums.x;
#else
  __builtin_trap();
#endif
}

// The host takes a wave to be 32 threads, whatever the device's pass does.
#ifdef __GFX9__
constexpr int kWave = 64;
#else
constexpr int kWave = 32;
#endif
template <int kThreads>
__global__ void ByWave(float* p) {
  p[threadIdx.x] = kThreads;
}
void Start(float* p) { ByWave<kWave><<<1, 64>>>(p); }
