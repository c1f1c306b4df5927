// The types and functions that kernels compute with, under the same names on all platforms.
//
// Lanes come in groups of 32, however wide the hardware's waves are. Shuffles stay inside a group,
// and all 32 lanes take part. No kernel may ask how wide a wave is, so that none can depend on it.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/hip/gpu/platform.h"
#include "kernels/hip/gpu/straight_math.h"
#include "kernels/quant/float_bits.h"
#include "kernels/quant/scalar.h"
#include "kernels/reference/math.h"

#if defined(TRINE_GPU_HOST)
#include "kernels/hip/gpu/emulator.h"
#endif

namespace trine::hip {

inline constexpr int kLanes = 32;

// true: in a block of 1,024, threads have only 64 registers, too few for the compiler.
#if defined(__gfx906__)
inline constexpr bool kFewRegisters = true;
#else
inline constexpr bool kFewRegisters = false;
#endif

// Four or two words that are read and written at once; aligned to their size. For AMD they are
// clang's vectors: clang would keep a struct that is copied whole in scratch memory, and arrays of
// such structs too.
#if defined(TRINE_GPU_AMD)
using Word4 = uint32_t __attribute__((ext_vector_type(4)));
using Word2 = uint32_t __attribute__((ext_vector_type(2)));
using Float4 = float __attribute__((ext_vector_type(4)));
#else
struct alignas(16) Word4 {
  uint32_t x, y, z, w;
};
struct alignas(8) Word2 {
  uint32_t x, y;
};
struct alignas(16) Float4 {
  float x, y, z, w;
};
#endif

// ---- Where a thread is -----------------------------------------------------------------------

#if defined(TRINE_GPU_HOST)
TRINE_DEVICE uint32_t ThreadX() { return emulator::Current().thread.x; }
TRINE_DEVICE uint32_t ThreadY() { return emulator::Current().thread.y; }
TRINE_DEVICE uint32_t BlockX() { return emulator::Current().block.x; }
TRINE_DEVICE uint32_t BlockY() { return emulator::Current().block.y; }
TRINE_DEVICE uint32_t BlockZ() { return emulator::Current().block.z; }
TRINE_DEVICE uint32_t BlockSizeX() { return emulator::Current().block_size.x; }
TRINE_DEVICE uint32_t GridX() { return emulator::Current().grid.x; }
TRINE_DEVICE uint32_t GridY() { return emulator::Current().grid.y; }
#elif defined(TRINE_GPU_AMD)
TRINE_DEVICE uint32_t ThreadX() { return __builtin_amdgcn_workitem_id_x(); }
TRINE_DEVICE uint32_t ThreadY() { return __builtin_amdgcn_workitem_id_y(); }
TRINE_DEVICE uint32_t BlockX() { return __builtin_amdgcn_workgroup_id_x(); }
TRINE_DEVICE uint32_t BlockY() { return __builtin_amdgcn_workgroup_id_y(); }
TRINE_DEVICE uint32_t BlockZ() { return __builtin_amdgcn_workgroup_id_z(); }
TRINE_DEVICE uint32_t BlockSizeX() { return __builtin_amdgcn_workgroup_size_x(); }
// AMD counts grids in threads. All blocks are whole.
TRINE_DEVICE uint32_t GridX() {
  return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
}
TRINE_DEVICE uint32_t GridY() {
  return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y();
}
#else
TRINE_DEVICE uint32_t ThreadX() { return threadIdx.x; }
TRINE_DEVICE uint32_t ThreadY() { return threadIdx.y; }
TRINE_DEVICE uint32_t BlockX() { return blockIdx.x; }
TRINE_DEVICE uint32_t BlockY() { return blockIdx.y; }
TRINE_DEVICE uint32_t BlockZ() { return blockIdx.z; }
TRINE_DEVICE uint32_t BlockSizeX() { return blockDim.x; }
TRINE_DEVICE uint32_t GridX() { return gridDim.x; }
TRINE_DEVICE uint32_t GridY() { return gridDim.y; }
#endif

// ---- Meeting ---------------------------------------------------------------------------------

// Waits for all threads of the block: a barrier.
TRINE_DEVICE void SyncBlock() {
#if defined(TRINE_GPU_HOST)
  emulator::SyncBlock();
#elif defined(TRINE_GPU_NVIDIA)
  __syncthreads();
#else
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#endif
}

// Waits until earlier kernels have ended. The runtime may let a kernel begin before that
// (gpuStart). So each kernel must call AwaitEarlier, in every block, before it reads what an
// earlier kernel may have written, and before it writes anything.
TRINE_DEVICE void AwaitEarlier() {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel begin once all blocks have called this or ended. Calling it late gains
// nothing: a kernel that begins early waits in AwaitEarlier.
TRINE_DEVICE void LetNextStart() {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Calls LetNextStart and AwaitEarlier, for kernels that have nothing to do before they wait.
TRINE_DEVICE void BeginAfterEarlier() {
  LetNextStart();
  AwaitEarlier();
}

// The parameter `from` of the functions below tells the emulator the line where lanes meet, which
// must be the same for all. No caller passes it.

// Waits for the 32 lanes of the group: a barrier. Then all see what any of them wrote to shared
// memory before.
TRINE_DEVICE void SyncLanes([[maybe_unused]] int from = __builtin_LINE()) {
#if defined(TRINE_GPU_HOST)
  emulator::SyncLanes(from);
#elif defined(TRINE_GPU_NVIDIA)
  __syncwarp();
#else
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
#endif
}

#if defined(TRINE_GPU_AMD)
// Returns the v of lane `lane` of the thread's group, which may be the upper group of its wave.
template <class T>
TRINE_DEVICE T ReadInGroup(T v, uint32_t lane) {
  static_assert(sizeof(T) == 4);
  const uint32_t mine = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  const uint32_t from = (mine & ~31u) | (lane & 31u);
  return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(static_cast<int32_t>(4 * from),
                                                            __builtin_bit_cast(int32_t, v)));
}
#endif

// Returns, to lane i of the group, the v of lane i ^ mask. T has 4 bytes.
template <class T>
TRINE_DEVICE T LaneXor(T v, int mask, [[maybe_unused]] int from = __builtin_LINE()) {
#if defined(TRINE_GPU_HOST)
  return emulator::LaneXor(v, mask, from);
#elif defined(TRINE_GPU_NVIDIA)
  return __shfl_xor_sync(0xffffffffu, v, mask, kLanes);
#else
  const uint32_t mine = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  return ReadInGroup(v, mine ^ static_cast<uint32_t>(mask));
#endif
}

// Returns the v of lane `lane` of the group. Each lane may ask for a different one.
template <class T>
TRINE_DEVICE T LaneRead(T v, int lane, [[maybe_unused]] int from = __builtin_LINE()) {
#if defined(TRINE_GPU_HOST)
  return emulator::LaneRead(v, lane, from);
#elif defined(TRINE_GPU_NVIDIA)
  return __shfl_sync(0xffffffffu, v, lane, kLanes);
#else
  return ReadInGroup(v, static_cast<uint32_t>(lane));
#endif
}

// Return the largest, or the least, v of the group's lanes, to all of them.
TRINE_DEVICE uint32_t LaneMax(uint32_t v, [[maybe_unused]] int from = __builtin_LINE()) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffu, v);
#else
  for (int mask = kLanes / 2; mask > 0; mask /= 2) {
    const uint32_t other = LaneXor(v, mask, from);
    v = other > v ? other : v;
  }
  return v;
#endif
}
TRINE_DEVICE uint32_t LaneMin(uint32_t v, int from = __builtin_LINE()) {
  return ~LaneMax(~v, from);
}

// Adds to a word of shared memory and returns its former value. Threads add in no defined order.
TRINE_DEVICE uint32_t AtomicAdd(uint32_t* word, uint32_t v) {
#if defined(TRINE_GPU_HOST)
  const uint32_t before = *word;
  *word += v;
  return before;
#elif defined(TRINE_GPU_NVIDIA)
  return atomicAdd(word, v);
#else
  return __hip_atomic_fetch_add(word, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#endif
}

// Declares a block's shared memory: `TRINE_SHARED(Tile, tile);` declares a reference, or a
// variable, `tile` of struct Tile, which must have no constructor. Use it once in a kernel.
#if defined(TRINE_GPU_HOST)
#define TRINE_SHARED(type, name) \
  type& name = *static_cast<type*>(::trine::hip::emulator::SharedMemory(sizeof(type)))
// Declares the launch's shared_bytes of dynamic shared memory as an array of `type`.
#define TRINE_DYNAMIC_SHARED(type, name) \
  type* name = static_cast<type*>(::trine::hip::emulator::DynamicSharedMemory())
#else
#define TRINE_SHARED(type, name) __shared__ type name
#define TRINE_DYNAMIC_SHARED(type, name)                         \
  extern __shared__ __align__(16) unsigned char trine_shared_[]; \
  type* name = reinterpret_cast<type*>(trine_shared_)
#endif

// Ends with a fault. The body of a kernel that a target can't run, but must define, because kernels
// have the same names on all targets. Without the fault, its results would silently stay unwritten.
TRINE_DEVICE void NeverStarted() { __builtin_trap(); }

// ---- Memory ------------------------------------------------------------------------------------

// Loads a value that is read once, by one block only, so it need not stay in the nearest cache. The
// compiler keeps such loads in order, and before what follows them (for example, a wait).
template <class T>
TRINE_DEVICE T LoadOnce(const T* at) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  T value;
  if constexpr (sizeof(T) == 16) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(at));
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.x), "=r"(value.y)
                 : "l"(at));
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(value) : "l"(at));
  } else {
    static_assert(sizeof(T) == 2);
    asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(value) : "l"(at));
  }
  return value;
#else
  return *at;
#endif
}

// Prefetches the memory near p into the cache that all multiprocessors share.
TRINE_DEVICE void Prefetch([[maybe_unused]] const void* p) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
#endif
}

// Begins to copy kBytes (4, 8 or 16), aligned to as many, into the block's shared memory. The copy
// belongs to the thread's open group. Until AwaitCopies has returned, and the block has met if
// other threads read it, the destination holds anything, and the source must not change.
template <int kBytes>
TRINE_DEVICE void BeginCopy(void* to, const void* from) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
#if defined(TRINE_GPU_HOST)
  emulator::BeginCopy(to, from, kBytes);
#elif defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(kBytes)
                 : "memory");
  }
#else
  __builtin_memcpy(__builtin_assume_aligned(to, kBytes), __builtin_assume_aligned(from, kBytes),
                   kBytes);
#endif
}

// Closes the thread's group of copies, which may be empty, and opens the next one.
TRINE_DEVICE void EndCopyGroup() {
#if defined(TRINE_GPU_HOST)
  emulator::EndCopyGroup();
#elif defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the kLeft latest of the thread's closed groups are under way.
template <int kLeft>
TRINE_DEVICE void AwaitCopies() {
#if defined(TRINE_GPU_HOST)
  emulator::AwaitCopyGroups(kLeft);
#elif defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

// Keeps the compiler from moving later loads before this point. AMD's compilers begin all loads of
// a long run of code at its top, and then have no registers left.
TRINE_DEVICE void KeepLoadsBehind() {
#if defined(TRINE_GPU_AMD) && defined(__HIP_DEVICE_COMPILE__)
  asm volatile("" ::: "memory");
#endif
}

// Returns v. AMD's compilers then compute the values that depend on it at this place, instead of
// keeping them in registers during a loop.
TRINE_DEVICE uint32_t ComputedHere(uint32_t v) {
#if defined(TRINE_GPU_AMD) && defined(__HIP_DEVICE_COMPILE__)
  asm volatile("" : "+v"(v));
#endif
  return v;
}

// Returns `element(i)`, a number or a pointer in an array of a kernel's arguments. A computed index
// makes some compilers copy the arguments into each thread's own memory.
template <uint32_t kCount, class Element>
TRINE_DEVICE auto PickArgument(uint32_t i, const Element& element) {
#if defined(TRINE_GPU_NVIDIA)
  return element(i);
#else
  auto picked = element(0);
  TRINE_UNROLL
  for (uint32_t j = 1; j < kCount; ++j) picked = i == j ? element(j) : picked;
  return picked;
#endif
}

// ---- Integers --------------------------------------------------------------------------------

// Returns c plus the products of the four signed bytes of a and b.
TRINE_DEVICE int32_t Dot4(uint32_t a, uint32_t b, int32_t c) {
#if defined(TRINE_GPU_NVIDIA)
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
#elif defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || \
    defined(__gfx1103__) || defined(__gfx1150__) || defined(__gfx1151__) ||   \
    defined(__gfx1200__) || defined(__gfx1201__)
  return __builtin_amdgcn_sudot4(true, static_cast<int>(a), true, static_cast<int>(b), c, false);
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || \
    defined(__gfx942__) || defined(__gfx1030__) || defined(__gfx1036__)
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), c, false);
#else
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  }
  return c;
#endif
}

// ---- Floats: the functions of the contract ---------------------------------------------------
//
// quant:: and reference:: functions are constexpr, which all platforms' compilers take for device
// code too. If a platform has a correctly rounded instruction, that is used and gives the same
// bits.

TRINE_DEVICE float Recip(float x) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  const uint32_t exponent = (quant::Bits(x) >> 23) & 0xffu;
  return exponent == 0 || exponent >= 253 ? 0.0f : __frcp_rn(x);
#else
  return straight::Recip(x);
#endif
}

TRINE_DEVICE float Sqrt(float x) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  const uint32_t exponent = quant::Bits(x) >> 23;
  return exponent == 0 || exponent >= 255 ? 0.0f : __fsqrt_rn(x);
#else
  return reference::Sqrt(x);
#endif
}

using quant::Abs;
using quant::Bits;
using quant::FromBits;
using quant::Round;
#if defined(TRINE_GPU_NVIDIA)
using quant::Canon;
using reference::Exp;
#else
using straight::Canon;
using straight::Exp;
#endif

TRINE_DEVICE float Rsqrt(float x) { return Recip(Sqrt(x)); }

TRINE_DEVICE float HalfToFloat(uint16_t half) {
#if defined(TRINE_GPU_NVIDIA) && defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#elif defined(TRINE_GPU_AMD) && defined(__HIP_DEVICE_COMPILE__)
  return static_cast<float>(std::bit_cast<_Float16>(half));
#else
  return quant::F16ToF32(half);
#endif
}

}  // namespace trine::hip
