# cmake -DOUTPUT=page_files.cc -DFOLDER=web -DFILES=index.html,main.js,... -P EmbedPage.cmake
#
# Writes PageFiles() of page.h: each file as an array of its bytes, index.html at "/", the others under
# "/page/".

set(type_html "text/html; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_svg "image/svg+xml")

string(REPLACE "," ";" FILES "${FILES}")
set(arrays "")
set(table "")
set(index 0)
foreach(name IN LISTS FILES)
  string(REGEX MATCH "[^.]+$" ending "${name}")
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${name}: no content type is known for .${ending}")
  endif()
  file(READ "${FOLDER}/${name}" bytes HEX)
  file(SHA256 "${FOLDER}/${name}" hash)
  string(SUBSTRING "${hash}" 0 16 hash)
  string(LENGTH "${bytes}" size)
  math(EXPR size "${size} / 2")
  # Every byte is an escape, so none can run into the next; a line of them is a piece of one literal.
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
  string(REPEAT "." 96 line)
  string(REGEX REPLACE "(${line})" "\\1\"\n    \"" bytes "${bytes}")
  if(name STREQUAL "index.html")
    set(path "/")
  else()
    set(path "/page/${name}")
  endif()
  string(APPEND arrays "// ${name}\nconstexpr char kFile${index}[] =\n    \"${bytes}\";\n")
  string(APPEND table "    {\"${path}\", \"${type_${ending}}\",\n"
                      "     {kFile${index}, ${size}}, \"\\\"${hash}\\\"\"},\n")
  math(EXPR index "${index} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Made by EmbedPage.cmake.
#include \"tools/server/page/page.h\"

namespace trine::server {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${table}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace trine::server
")
