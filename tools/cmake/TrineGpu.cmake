# Chooses the GPUs for which the kernels of kernels/hip are compiled, and the compiler.
#
#   TRINE_HIP_PLATFORM  auto, amd, nvidia, host or off. auto is amd with an AMD GPU and hipcc, else
#                       nvidia with an NVIDIA GPU and nvcc, else host in a build with tests, else off:
#                       compiling takes minutes, which nobody without the GPU should have to spend.
#                       host: only the emulator.
#   TRINE_HIP_ARCHS     empty for the defaults, "all", or a list such as gfx1030;gfx1100 or sm_90
#
# docs/hip.md lists the compilers and their targets. For other files:
#
#   TRINE_GPU_PLATFORM  amd, nvidia, or empty if nothing is compiled for a device
#   TRINE_GPU_ARCHS     the targets, such as gfx90a;gfx1030 or sm_80;sm_90
#   TRINE_GPU_HOST      whether kernels are built for the emulator: with `host`, and with tests
#
#   trine_gpu_objects(NAME SOURCES a.gpu.cc ... [DEPS ...])
#       A static library of device sources. A target that links it is compiled by the project's
#       compiler, with the platform's definition (kernels/hip/gpu/platform.h), the headers and the
#       library of the vendor's runtime, and TRINE_GPU_ARCHS="gfx90a gfx1030" as a string.
#
# kernels/hip makes two libraries from one list of sources, and a backend from either:
#
#   if(TRINE_GPU_PLATFORM)
#     trine_library(trine_hip SOURCES ${sources} DEPS trine_hip_kernels ...)
#     trine_backend(hip SOURCES plugin.cc DEPS trine_hip)
#   endif()
#   if(TRINE_GPU_HOST)
#     trine_library(trine_hip_host SOURCES ${sources} DEPS trine_hip_kernels_host ...)
#     trine_backend(hip-host SOURCES plugin.cc DEPS trine_hip_host)
#   endif()
#
# Device sources are compiled by custom commands: CMake's own HIP language needs a folder layout
# that Debian does not have, and a GPU or a list of targets before it configures.

set(TRINE_HIP_PLATFORM auto CACHE STRING
    "The HIP backend's platform: auto, amd (hipcc), nvidia (nvcc), host (the emulator) or off")
set_property(CACHE TRINE_HIP_PLATFORM PROPERTY STRINGS auto amd nvidia host off)
set(TRINE_HIP_ARCHS "" CACHE STRING
    "What device code is compiled for: empty (the defaults), all, or a list of gfx... or sm_...")

set(TRINE_GPU_PLATFORM "")
set(TRINE_GPU_ARCHS "")
set(TRINE_GPU_HOST OFF)

if(NOT TRINE_HIP_PLATFORM MATCHES "^(auto|amd|nvidia|host|off)$")
  message(FATAL_ERROR "TRINE_HIP_PLATFORM is '${TRINE_HIP_PLATFORM}': use auto, amd, nvidia, host or off")
endif()
if(TRINE_CPU_ONLY)
  return()
endif()
if(TRINE_BUILD_TESTS OR TRINE_HIP_PLATFORM STREQUAL "host")
  set(TRINE_GPU_HOST ON)
endif()

# Sets `result` to the first words of a device compiler's command line. ccache needs depend mode, as
# the preprocessor takes only one target, and the compiler behind a wrapper as part of the key.
function(trine_gpu_launcher result version)
  set(launcher "")
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
    set(launcher "CCACHE_DEPEND=1" "CCACHE_COMPILERCHECK=string:${version}"
        "${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
  set(${result} "${launcher}" PARENT_SCOPE)
endfunction()

# Runs a command. Sets `result` to whether it succeeded, and `why` to its first error or "".
function(trine_gpu_try result why)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  set(said "")
  if(NOT code EQUAL 0)
    string(REGEX MATCH "[^\n]*error[^\n]*" said "${out}")
    if(NOT said)
      set(said "it ended with ${code}")
    endif()
  endif()
  string(COMPARE EQUAL "${said}" "" works)
  set(${result} ${works} PARENT_SCOPE)
  set(${why} "${said}" PARENT_SCOPE)
endfunction()

# Each platform's file defines trine_gpu_find_<platform>(why). On success it leaves `why` empty,
# sets TRINE_GPU_ARCHS, TRINE_GPU_REFUSED, TRINE_GPU_COMPILE (the command up to the source) and
# TRINE_GPU_COMPILER, and makes the target trine_gpu_platform. Otherwise it sets `why`.
include(TrineGpuAmd)
include(TrineGpuNvidia)

set(candidates "")
if(TRINE_HIP_PLATFORM MATCHES "^(amd|nvidia)$")
  set(candidates ${TRINE_HIP_PLATFORM})
elseif(TRINE_HIP_PLATFORM STREQUAL "auto" AND NOT TRINE_SANITIZE)
  # Sanitizers see nothing of a device, so they get the emulator.
  if(EXISTS /dev/kfd)
    list(APPEND candidates amd)
  endif()
  if(EXISTS /dev/nvidiactl)
    list(APPEND candidates nvidia)
  endif()
  if(NOT candidates)
    message(STATUS "HIP: no GPU of AMD's or NVIDIA's here, so its backend is not built (TRINE_HIP_PLATFORM)")
  endif()
endif()
set(missing "")
foreach(platform IN LISTS candidates)
  cmake_language(CALL trine_gpu_find_${platform} why)
  if(NOT why)
    set(TRINE_GPU_PLATFORM ${platform})
    break()
  elseif(NOT TRINE_HIP_PLATFORM STREQUAL "auto")
    message(FATAL_ERROR "TRINE_HIP_PLATFORM is ${platform}: ${why}")
  endif()
  list(APPEND missing "${why}")
endforeach()
if(TRINE_GPU_PLATFORM)
  list(JOIN TRINE_GPU_ARCHS " " archs)
  message(STATUS "HIP: for ${archs}, by ${TRINE_GPU_COMPILER}")
  foreach(refused IN LISTS TRINE_GPU_REFUSED)
    message(STATUS "HIP: left out ${refused}")
  endforeach()
  target_compile_definitions(trine_gpu_platform INTERFACE "TRINE_GPU_ARCHS=\"${archs}\"")
elseif(missing)
  list(JOIN missing "; " missing)
  message(STATUS "HIP: no compiler for devices (${missing}); its backend is not built")
endif()

function(trine_gpu_objects target)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  set(objects "")
  foreach(source IN LISTS ARG_SOURCES)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}/${source}.o")
    get_filename_component(folder "${object}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${object}"
      COMMAND ${TRINE_GPU_COMPILE} -DNDEBUG "-I${PROJECT_SOURCE_DIR}"
              -MD -MT "${object}" -MF "${object}.d"
              -c "${CMAKE_CURRENT_SOURCE_DIR}/${source}" -o "${object}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${source}" "${TRINE_GPU_COMPILER}" DEPFILE "${object}.d"
      COMMENT "Compiling ${source} for ${TRINE_GPU_PLATFORM} devices" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_library(${target} STATIC ${objects})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} trine_gpu_platform)
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
endfunction()
