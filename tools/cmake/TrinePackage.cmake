# Makes Debian packages: `cmake --build build/release --target package`, or cpack in a built tree.
#
#   trine               the command, its manual pages, completions and documentation
#   trine-backends      the backend plugins and the program that tries them
#   trine-backend-hip   the plugin for discrete GPUs, if it was compiled for devices
#   libtrineN           the library; N is its ABI
#   libtrine-dev        headers, CMake and pkg-config files, examples
#   trine-model-tales   the model that comes with the project
#
# Libraries and plugins are installed in /usr/lib/<architecture> if the tree was configured with
# -DCMAKE_INSTALL_PREFIX=/usr, else in /usr/lib. The programs find them in either.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME trine)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # a text here would head every package's description
set(CPACK_PACKAGE_CONTACT "The Trine maintainers <maintainers@trine.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CPACK_PACKAGE_CONTACT}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL "")

set(debian_dir "${PROJECT_BINARY_DIR}/debian")
string(TIMESTAMP TRINE_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # uses SOURCE_DATE_EPOCH
find_program(TRINE_GZIP gzip)

# trine_package(COMPONENT NAME SUMMARY MORE [DEPENDS ...] [SECTION s] [RECOMMENDS r]
#               [ARCHITECTURE a]): COMPONENT as the Debian package NAME.
function(trine_package component name summary more)
  cmake_parse_arguments(ARG "" "SECTION;RECOMMENDS;ARCHITECTURE" "DEPENDS" ${ARGN})
  string(TOUPPER "${component}" upper)
  set(prefix CPACK_DEBIAN_${upper})
  set(${prefix}_PACKAGE_NAME "${name}" PARENT_SCOPE)
  set(${prefix}_DESCRIPTION "${summary}\n${more}" PARENT_SCOPE)
  list(TRANSFORM ARG_DEPENDS APPEND " (= ${PROJECT_VERSION})")
  list(JOIN ARG_DEPENDS ", " depends)
  set(${prefix}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(${prefix}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}" PARENT_SCOPE)
  if(ARG_SECTION)
    set(${prefix}_PACKAGE_SECTION "${ARG_SECTION}" PARENT_SCOPE)
  endif()
  if(ARG_ARCHITECTURE)
    set(${prefix}_PACKAGE_ARCHITECTURE "${ARG_ARCHITECTURE}" PARENT_SCOPE)
  else()
    # Depends is computed from what the programs and libraries link.
    set(${prefix}_PACKAGE_SHLIBDEPS ON PARENT_SCOPE)
  endif()
  set(CPACK_COMPONENTS_ALL "${CPACK_COMPONENTS_ALL};${component}" PARENT_SCOPE)

  # Each package has its copyright and changelog in a folder of its own name.
  set(doc_dir "${CMAKE_INSTALL_DATADIR}/doc/${name}")
  install(FILES "${PROJECT_SOURCE_DIR}/tools/cmake/debian/copyright" DESTINATION "${doc_dir}"
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES "${debian_dir}/changelog.gz" DESTINATION "${doc_dir}" COMPONENT ${component}
          EXCLUDE_FROM_ALL)
endfunction()

if(TRINE_GZIP)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/debian/changelog.in" "${debian_dir}/changelog" @ONLY)
  execute_process(COMMAND "${TRINE_GZIP}" -9 -n -c "${debian_dir}/changelog"
                  OUTPUT_FILE "${debian_dir}/changelog.gz" COMMAND_ERROR_IS_FATAL ANY)
else()
  message(STATUS "gzip: not found; Debian packages can't be made")
  return()
endif()

get_target_property(soversion trine_runtime SOVERSION)
set(library libtrine${soversion})
trine_package(command trine "language models, exact to the bit, on all of a machine"
  "Trine runs GGUF language models over a machine's CPU and GPUs, with the
same bits on any device, split and number of threads. This is the command
line: it generates text, measures perplexity, and shows models, tokens and
the machine."
  DEPENDS trine-backends RECOMMENDS "trine-model-tales (= ${PROJECT_VERSION})")
trine_package(backends trine-backends "backend plugins of the Trine model runtime"
  "What runs a model on one kind of device, each a plugin, and the program
that tries a plugin in a process of its own before it is let in.")
if(TARGET trine-backend-hip)
  # Depends includes the runtime that AMD's plugin links only if it is Debian's own: libraries of
  # other packages carry no such information.
  set(runtime "")
  if(TRINE_GPU_PLATFORM STREQUAL "amd" AND NOT TRINE_HIP_LIBRARY MATCHES "^/usr/lib/")
    set(runtime RECOMMENDS hip-runtime-amd)
  endif()
  list(JOIN TRINE_GPU_ARCHS "\n" targets)
  trine_package(backend-hip trine-backend-hip "GPU backend of the Trine model runtime"
    "The plugin that runs models on discrete GPUs of AMD, by HIP, or of
NVIDIA, by CUDA. This one is compiled for:
${targets}"
    DEPENDS trine-backends ${runtime})
endif()
trine_package(library ${library} "library that runs language models, exact to the bit"
  "The C API of the Trine model runtime: engines, sessions, batches,
callbacks and cancellation."
  SECTION libs DEPENDS trine-backends)
trine_package(development libtrine-dev "development files of the Trine model runtime"
  "Headers for programs that embed Trine, in C and C++, and for those who
write a backend; CMake and pkg-config files; examples of both."
  SECTION libdevel DEPENDS ${library})
trine_package(model trine-model-tales "small language model that writes fairy-tale prose"
  "A model of 27 million parameters, trained from scratch on public-domain
books, which Trine uses where no other is named."
  ARCHITECTURE all)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${CMAKE_CURRENT_LIST_DIR}/debian/triggers")

include(CPack)
