# Compiles compute shaders when the project is built, and embeds them in what links them.
#
#   trine_shader(TARGET NAME SOURCE file.comp [DEFINES X=1 ...] [FAST])
#   trine_shader_list(TARGET)      after the last trine_shader of TARGET
#
# Each shader becomes `shaders::NAME` of kernels/vulkan/spirv/shaders.h; DEFINES makes several of
# one source. Only a FAST shader may be inexact. Needs TRINE_GLSLC and TRINE_SPIRV_VAL.

function(trine_shader target name)
  cmake_parse_arguments(ARG "FAST" "SOURCE" "DEFINES" ${ARGN})
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/vulkan_shaders")
  set(spv "${folder}/${name}.spv")
  set(code "${folder}/${name}.cc")
  list(TRANSFORM ARG_DEFINES PREPEND -D)
  set(numerics exact)
  if(ARG_FAST)
    set(numerics fast)
  endif()
  add_custom_command(OUTPUT "${code}" BYPRODUCTS "${spv}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${TRINE_GLSLC}" --target-env=vulkan1.2 -O -Werror ${ARG_DEFINES}
            -I "${PROJECT_SOURCE_DIR}/kernels/vulkan/shaders" -MD -MF "${spv}.d" -MT "${code}" -o "${spv}" "${source}"
    COMMAND "${TRINE_SPIRV_VAL}" --target-env vulkan1.2 "${spv}"
    COMMAND trine-embed-shader ${name} ${numerics} "${spv}" "${code}"
    DEPENDS "${source}" trine-embed-shader DEPFILE "${spv}.d"
    COMMENT "Compiling shader ${name}" VERBATIM)
  target_sources(${target} PRIVATE "${code}")
  set_property(TARGET ${target} APPEND PROPERTY TRINE_SHADERS ${name})
endfunction()

function(trine_shader_list target)
  get_target_property(names ${target} TRINE_SHADERS)
  list(TRANSFORM names REPLACE "(.+)" "TRINE_SHADER(\\1)")
  list(JOIN names "\n" text)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/vulkan_shaders/shader_list.inc"
       CONTENT "${text}\n" @ONLY)
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}>")
endfunction()
