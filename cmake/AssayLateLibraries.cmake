# A program's shared libraries, loaded when one of their functions is first called: what a command does not use costs it
# nothing. (Half of what `assay paramcount` took from its start to its end was the loading of OpenSSL, libgit2 and the HTTP
# library, none of which it calls: docs/benchmarks.md.)
#
#   assay_load_late(assay PATH/libz.so ...)
#
# The program gets functions of the same names, made from what its static libraries call (late_functions.awk), and the
# linker, told --as-needed, has no more need of the library. Tests, sanitized builds and processors other than x86-64 are
# linked as ever.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT ASSAY_SANITIZE AND NOT ASSAY_FUZZ)
  set(ASSAY_LATE_LIBRARIES ON)
else()
  set(ASSAY_LATE_LIBRARIES OFF)
endif()

function(assay_load_late program)
  if(NOT ASSAY_LATE_LIBRARIES)
    return()
  endif()
  get_property(names GLOBAL PROPERTY ASSAY_LIBRARIES)
  set(archives)
  foreach(name IN LISTS names)
    list(APPEND archives $<TARGET_FILE:${name}>)
  endforeach()
  string(JOIN " " libraries ${ARGN})
  set(rule ${PROJECT_SOURCE_DIR}/cmake/late_functions.awk)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/late_functions.S)
  add_custom_command(
    OUTPUT ${made}
    COMMAND awk -v nm=${CMAKE_NM} -v readelf=${CMAKE_READELF} -v "libraries=${libraries}" -f ${rule} ${archives} > ${made}
    DEPENDS ${rule} ${names} COMMAND_EXPAND_LISTS VERBATIM)
  target_sources(${program} PRIVATE ${made} ${PROJECT_SOURCE_DIR}/cli/late/late_functions.cpp)
  target_link_options(${program} PRIVATE -Wl,--as-needed)
endfunction()
