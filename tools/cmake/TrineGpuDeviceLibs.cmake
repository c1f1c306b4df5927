# ROCm's device libraries with what a distribution left out.
#
# Every target has a file, oclc_isa_version_NNN.bc, that says nothing but its number. Debian's end
# before gfx11, though its clang goes on. Here is a folder of links to all of them, and missing ones
# are written into it.

# Adds the file of `arch` to `folder`, whose other files are those beside `library` (ockl.bc);
# `compiler` is a clang++ no newer than any that will read it.
function(trine_gpu_add_device_lib folder library compiler arch)
  string(REGEX MATCH "^gfx([0-9]+)([0-9a-f])([0-9a-f])(:.*)?$" matched "${arch}")
  if(NOT matched)
    return()
  endif()
  set(name "${CMAKE_MATCH_1}${CMAKE_MATCH_2}${CMAKE_MATCH_3}")
  # gfx90a is 9010: the last two digits of a name are hexadecimal.
  math(EXPR number "${CMAKE_MATCH_1} * 1000 + 0x${CMAKE_MATCH_2} * 100 + 0x${CMAKE_MATCH_3}")
  file(MAKE_DIRECTORY "${folder}")
  get_filename_component(installed "${library}" DIRECTORY)
  file(GLOB files "${installed}/*.bc")
  foreach(file IN LISTS files)
    get_filename_component(file_name "${file}" NAME)
    file(CREATE_LINK "${file}" "${folder}/${file_name}" SYMBOLIC)
  endforeach()
  set(made "${folder}/oclc_isa_version_${name}.bc")
  if(EXISTS "${made}")
    return()
  endif()
  file(WRITE "${folder}/isa_${name}.ll"
    "target triple = \"amdgcn-amd-amdhsa\"\n"
    "@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) "
    "constant i32 ${number}, align 4\n")
  # Whether it worked is seen when the target is tried again.
  execute_process(
    COMMAND "${compiler}" --target=amdgcn-amd-amdhsa -nogpulib -Wno-override-module
            -x ir "${folder}/isa_${name}.ll" -emit-llvm -c -o "${made}"
    OUTPUT_QUIET ERROR_QUIET)
endfunction()
