# Compiles for AMD's GPUs with hipcc, or with a plain clang++ that knows targets which hipcc does
# not.
#
# One compiler makes all objects of a build: a kernel is registered with one bundle of code, so the
# code of two compilers can't be combined.

set(rocm ENV ROCM_PATH ENV HIP_PATH)
find_program(TRINE_HIPCC hipcc HINTS ${rocm} PATHS /opt/rocm PATH_SUFFIXES bin
             DOC "AMD's compiler")
find_program(TRINE_HIP_CLANG clang++-19 DOC "A clang++ for AMD's targets that hipcc refuses")
find_path(TRINE_HIP_INCLUDE_DIR hip/hip_runtime.h HINTS ${rocm} PATHS /opt/rocm
          PATH_SUFFIXES include)
find_library(TRINE_HIP_LIBRARY amdhip64 HINTS ${rocm} PATHS /opt/rocm PATH_SUFFIXES lib)
mark_as_advanced(TRINE_HIPCC TRINE_HIP_CLANG TRINE_HIP_INCLUDE_DIR TRINE_HIP_LIBRARY)
unset(rocm)

# hipcc would choose between AMD and NVIDIA by itself.
set(TRINE_HIP_ENV "${CMAKE_COMMAND}" -E env HIP_PLATFORM=amd)

# One target of each common family: CDNA 2, RDNA 2, RDNA 3.
set(TRINE_HIP_DEFAULT_ARCHS gfx90a gfx1030 gfx1100)
set(TRINE_HIP_ALL_ARCHS gfx906 gfx90a gfx942 gfx1030 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103
    gfx1150 gfx1151 gfx1200 gfx1201)

# Leaves out ROCm's own headers and device libraries: see kernels/hip/gpu/amd_compiler.h.
set(TRINE_HIP_FLAGS -x hip -nogpuinc -nogpulib
    -include "${PROJECT_SOURCE_DIR}/kernels/hip/gpu/amd_compiler.h")

# The flags of kernels. -Wno-pass-failed: a loop that was not unrolled matters only if it costs
# something. Its kernel then has scratch memory, which tools/check_code_objects reports.
set(TRINE_HIP_KERNEL_FLAGS -std=c++20 -O2 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden
    -ffp-contract=off -Wall -Wextra -Wno-pass-failed -DTRINE_GPU_AMD=1)

# Finds out which of `archs` the compiler's command (ARGN) takes. Sets in the caller
# <prefix>_accepted, <prefix>_refused ("gfx942 (why)") and <prefix>_command.
function(trine_gpu_try_archs prefix archs)
  set(probe "${CMAKE_BINARY_DIR}/hip-probe")
  file(WRITE "${probe}/probe.hip" "__global__ void Probe(int* p) { *p = 1; }\n")
  set(accepted "")
  set(refused "")
  foreach(arch IN LISTS archs)
    trine_gpu_try(works why ${TRINE_HIP_ENV} ${ARGN} ${TRINE_HIP_FLAGS} --offload-arch=${arch}
                  --offload-device-only -c "${probe}/probe.hip" -o "${probe}/probe.o")
    if(works)
      list(APPEND accepted ${arch})
    else()
      # Cut the explanation of target names behind the first clause.
      string(REGEX REPLACE "^.*error: |;.*$" "" why "${why}")
      list(APPEND refused "${arch} (${why})")
    endif()
  endforeach()
  set(${prefix}_accepted "${accepted}" PARENT_SCOPE)
  set(${prefix}_refused "${refused}" PARENT_SCOPE)
  set(${prefix}_command ${ARGN} PARENT_SCOPE)
endfunction()

# Sets in the caller chosen_accepted, _refused, _command, _compiler and _version.
function(trine_gpu_choose_amd_compiler archs)
  # Without a GPU, hipcc writes noise to standard error.
  execute_process(COMMAND ${TRINE_HIP_ENV} "${TRINE_HIPCC}" --version
                  OUTPUT_VARIABLE version ERROR_QUIET)
  trine_gpu_try_archs(hipcc "${archs}" "${TRINE_HIPCC}")
  set(chosen hipcc)
  set(compiler "${TRINE_HIPCC}")
  # Clang 15 uses only half of RDNA 3's registers.
  if(TRINE_HIP_CLANG AND (hipcc_refused OR (version MATCHES "clang version 15" AND archs MATCHES "gfx11")))
    # Pass the options that hipcc passes, and the code object version that every runtime reads.
    get_filename_component(root "${TRINE_HIP_INCLUDE_DIR}" DIRECTORY)
    trine_gpu_try_archs(plain "${archs}"
      "${TRINE_HIP_CLANG}" "--rocm-path=${root}" -mcode-object-version=4
      -mllvm -amdgpu-early-inline-all=true -mllvm -amdgpu-function-calls=false)
    list(LENGTH hipcc_accepted hipcc_count)
    list(LENGTH plain_accepted plain_count)
    if(plain_count GREATER_EQUAL hipcc_count)
      set(chosen plain)
      set(compiler "${TRINE_HIP_CLANG}")
      execute_process(COMMAND "${compiler}" --version OUTPUT_VARIABLE version ERROR_QUIET)
    endif()
  endif()
  foreach(name accepted refused command)
    set(chosen_${name} "${${chosen}_${name}}" PARENT_SCOPE)
  endforeach()
  set(chosen_compiler "${compiler}" PARENT_SCOPE)
  string(SHA256 version "${version}")  # only compared; the cache can't hold several lines
  set(chosen_version "${version}" PARENT_SCOPE)
endfunction()

function(trine_gpu_find_amd why)
  if(NOT TRINE_HIPCC)
    set(${why} "hipcc was not found (apt-get install hipcc)" PARENT_SCOPE)
    return()
  elseif(NOT TRINE_HIP_INCLUDE_DIR OR NOT TRINE_HIP_LIBRARY)
    set(${why} "the HIP runtime was not found (apt-get install libamdhip64-dev)" PARENT_SCOPE)
    return()
  endif()
  set(archs ${TRINE_HIP_ARCHS})
  if(NOT archs)
    set(archs ${TRINE_HIP_DEFAULT_ARCHS})
  elseif(archs STREQUAL "all")
    set(archs ${TRINE_HIP_ALL_ARCHS})
  endif()

  # Trying a target takes about a second: keep the result until something changes.
  set(key "${archs}")
  foreach(file IN ITEMS "${TRINE_HIPCC}" "${TRINE_HIP_CLANG}")
    file(TIMESTAMP "${file}" time)
    list(APPEND key "${file}" "${time}")
  endforeach()
  set(names accepted refused command compiler version)
  if(NOT TRINE_HIP_PROBED STREQUAL key)
    trine_gpu_choose_amd_compiler("${archs}")
    foreach(name IN LISTS names)
      set(TRINE_HIP_PROBED_${name} "${chosen_${name}}" CACHE INTERNAL "")
    endforeach()
    set(TRINE_HIP_PROBED "${key}" CACHE INTERNAL "")
  endif()
  foreach(name IN LISTS names)
    set(${name} "${TRINE_HIP_PROBED_${name}}")
  endforeach()

  if(NOT accepted OR (refused AND TRINE_HIP_ARCHS AND NOT TRINE_HIP_ARCHS STREQUAL "all"))
    list(JOIN refused ", " refused)
    set(${why} "${compiler} refuses ${refused}" PARENT_SCOPE)
    return()
  endif()

  set(targets ${accepted})
  list(TRANSFORM targets PREPEND --offload-arch=)
  set(flags ${TRINE_HIP_FLAGS} ${targets} ${TRINE_HIP_KERNEL_FLAGS})
  if(TRINE_WARNINGS_ARE_ERRORS)
    list(APPEND flags -Werror)
  endif()
  trine_gpu_launcher(launcher "${version}")
  set(TRINE_GPU_COMPILE ${TRINE_HIP_ENV} ${launcher} ${command} ${flags} PARENT_SCOPE)
  set(TRINE_GPU_COMPILER "${compiler}" PARENT_SCOPE)
  set(TRINE_GPU_ARCHS "${accepted}" PARENT_SCOPE)
  set(TRINE_GPU_REFUSED "${refused}" PARENT_SCOPE)

  add_library(trine_gpu_platform INTERFACE)
  target_compile_definitions(trine_gpu_platform INTERFACE TRINE_GPU_AMD=1)
  target_include_directories(trine_gpu_platform SYSTEM INTERFACE "${TRINE_HIP_INCLUDE_DIR}")
  target_link_libraries(trine_gpu_platform INTERFACE "${TRINE_HIP_LIBRARY}")
  set(${why} "" PARENT_SCOPE)
endfunction()
