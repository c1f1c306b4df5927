# The environment of tests that need a Vulkan driver: Mesa's driver for the CPU if it is installed,
# so that every machine runs the same tests.
#
#   trine_lavapipe_environment(RESULT)    variables, for the property ENVIRONMENT of tests

set(TRINE_LAVAPIPE_PRELOAD "")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  file(STRINGS /proc/cpuinfo features REGEX "^Features" LIMIT_COUNT 1)
  file(STRINGS /proc/cpuinfo part REGEX "^CPU part.*0xd(4[06789def]|8[0-9a-f])" LIMIT_COUNT 1)
  if(part AND NOT features MATCHES " sve( |$)")
    add_library(trine_lavapipe_processor SHARED
                "${PROJECT_SOURCE_DIR}/tests/vulkan/lavapipe_processor.c")
    target_compile_options(trine_lavapipe_processor PRIVATE -Wall -Wextra)
    target_link_libraries(trine_lavapipe_processor PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(trine_lavapipe_processor PROPERTIES
                          LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
    set(TRINE_LAVAPIPE_PRELOAD "${CMAKE_BINARY_DIR}/tests/libtrine_lavapipe_processor.so")
  endif()
endif()

function(trine_lavapipe_environment result)
  # A cache must not return code that an earlier run made for this processor's name.
  set(environment "MESA_SHADER_CACHE_DIR=${CMAKE_BINARY_DIR}/mesa-cache")
  file(GLOB drivers /usr/share/vulkan/icd.d/lvp_icd*.json)
  if(drivers)
    list(GET drivers 0 driver)
    list(APPEND environment "VK_DRIVER_FILES=${driver}" "VK_ICD_FILENAMES=${driver}")
  endif()
  if(TRINE_LAVAPIPE_PRELOAD)
    list(APPEND environment "LD_PRELOAD=${TRINE_LAVAPIPE_PRELOAD}")
  endif()
  if(TRINE_SANITIZE STREQUAL "address")
    # Drivers and layers leak. The tests that count objects find leaks of this project.
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0)
  endif()
  set(${result} "${environment}" PARENT_SCOPE)
endfunction()
