# trine_find_native_level(): sets TRINE_NATIVE_LEVEL in the cache, the best instruction set level of
# the CPU's kernels that the configuring machine can run; "" where that is not known.

function(trine_find_native_level)
  set(folder "${PROJECT_SOURCE_DIR}/kernels/cpu/levels")
  file(STRINGS "${folder}/levels.txt" known REGEX " ${TRINE_NATIVE_LEVEL} ")
  # The name that an older tree knew may be that of no level any more.
  if(DEFINED TRINE_NATIVE_LEVEL AND (known OR NOT TRINE_NATIVE_LEVEL))
    return()
  endif()
  set(level "")
  if(NOT CMAKE_CROSSCOMPILING)
    try_run(runs compiles
      SOURCES "${folder}/native_level.cc" "${folder}/levels.cc" "${folder}/host_features.cc"
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}"
      COMPILE_DEFINITIONS -DTRINE_CPU_SOME_LEVELS
      CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
      COMPILE_OUTPUT_VARIABLE log
      RUN_OUTPUT_VARIABLE output)
    if(compiles AND runs EQUAL 0)
      string(STRIP "${output}" level)
    endif()
  endif()
  set(TRINE_NATIVE_LEVEL "${level}" CACHE INTERNAL
      "The best instruction set level of the machine that configured this folder")
endfunction()
