# What is looked for on the machine. A required package stops the configuration with its Debian
# name; an optional one is left out with a line that says what is lost.

find_package(Threads REQUIRED)
find_package(PkgConfig)

macro(trine_require package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found: apt-get install ${debian}")
  endif()
endmacro()

trine_require(absl libabsl-dev CONFIG)
trine_require(nlohmann_json nlohmann-json3-dev CONFIG)
trine_require(CLI11 libcli11-dev CONFIG)
if(TRINE_BUILD_TESTS)
  trine_require(GTest "libgtest-dev libgmock-dev" CONFIG)
endif()

set(TRINE_HAVE_HWLOC OFF)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(hwloc QUIET IMPORTED_TARGET hwloc>=2.0)
  set(TRINE_HAVE_HWLOC ${hwloc_FOUND})
endif()
if(NOT TRINE_HAVE_HWLOC)
  message(STATUS "hwloc: not found (libhwloc-dev); topology is read from sysfs, threads are not pinned")
endif()

find_package(benchmark CONFIG QUIET)
if(NOT benchmark_FOUND)
  message(STATUS "Google Benchmark: not found (libbenchmark-dev); trine-microbench is not built")
endif()
