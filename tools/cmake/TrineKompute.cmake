# Looks for Kompute, for the executor of that name in the Vulkan backend. No Debian package has it
# and it is never fetched: the user has to install it. Libraries of the same version differ in what
# they offer, so a probe decides: a module, like the plugin, that derives from kp::Memory.
set(TRINE_HAVE_KOMPUTE OFF)
set(without "")
if(TRINE_WITH_KOMPUTE STREQUAL "OFF")
  return()
endif()
if(NOT TRINE_HAVE_VULKAN)
  set(without "the Vulkan backend is not built")
else()
  # Look for fmt first: Kompute's package names fmt without looking for it, and CMake then stops.
  find_package(fmt CONFIG QUIET)
  if(fmt_FOUND)
    find_package(kompute CONFIG QUIET)
  endif()
  if(NOT fmt_FOUND)
    set(without "fmt, which it needs, was not found (libfmt-dev)")
  elseif(NOT kompute_FOUND)
    set(without "not found")
  else()
    if(NOT TRINE_KOMPUTE_PROBED STREQUAL kompute_DIR)
      unset(TRINE_KOMPUTE_WORKS CACHE)
      set(TRINE_KOMPUTE_PROBED "${kompute_DIR}" CACHE INTERNAL "What TRINE_KOMPUTE_WORKS is about")
    endif()
    try_compile(TRINE_KOMPUTE_WORKS PROJECT trine_kompute_probe
      SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/kompute_probe"
      BINARY_DIR "${CMAKE_BINARY_DIR}/kompute_probe"
      CMAKE_FLAGS "-Dfmt_DIR:PATH=${fmt_DIR}" "-Dkompute_DIR:PATH=${kompute_DIR}"
                  "-DCMAKE_PREFIX_PATH:STRING=${CMAKE_PREFIX_PATH}")
    if(TRINE_KOMPUTE_WORKS)
      set(TRINE_HAVE_KOMPUTE ON)
    else()
      set(without "${kompute_DIR} has no kp::Memory that can be linked into a plugin")
    endif()
  endif()
endif()
if(TRINE_HAVE_KOMPUTE)
  message(STATUS "Kompute: ${kompute_DIR}; the Vulkan backend has executor=kompute")
elseif(TRINE_WITH_KOMPUTE STREQUAL "ON")
  message(FATAL_ERROR "TRINE_WITH_KOMPUTE is ON, but of Kompute: ${without}")
elseif(TRINE_HAVE_VULKAN)
  message(STATUS "Kompute: ${without}; the Vulkan backend has its native executor only")
endif()
