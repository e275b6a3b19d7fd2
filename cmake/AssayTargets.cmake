# One target per folder: every .cpp directly in it, and nothing else, belongs to the target.
#
#   assay_library(assay_system LINK fmt::fmt)        in core/system/CMakeLists.txt
#   assay_library(assay_ops LOOPS LINK ...)          its loops go over every number of a model
#   assay_library(assay_formats HASHES LINK ...)     it goes over every byte of a model
#   assay_library(assay_verify COMMAND LINK ...)     it has no loop that a sanitized run would wait for
#   assay_library(assay_model APART a.cpp LINK ...)  with ASSAY_UNITY, a.cpp is compiled by itself: its unnamed
#                                                    namespace has names that others of its folder have, too,
#                                                    or it defines macros that they are not to see
#   assay_tests(test_core DIRECTORIES core LINK assay_formats)
function(assay_library name)
  cmake_parse_arguments(arg "LOOPS;HASHES;COMMAND" "" "LINK;LINK_PRIVATE;SUBFOLDERS;APART" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  foreach(folder IN LISTS arg_SUBFOLDERS)
    file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cpp)
    list(APPEND sources ${more})
  endforeach()
  add_library(${name} STATIC ${sources})
  add_library(assay::${name} ALIAS ${name})
  target_link_libraries(${name} PUBLIC assay_settings ${arg_LINK} PRIVATE ${arg_LINK_PRIVATE})
  set_target_properties(${name} PROPERTIES ASSAY_LOOPS ${arg_LOOPS} ASSAY_COMMAND ${arg_COMMAND})
  set_property(GLOBAL APPEND PROPERTY ASSAY_LIBRARIES ${name})
  if(ASSAY_UNITY)
    assay_unite(${name} "${sources}" "${arg_APART}")
    if(NOT arg_LOOPS AND NOT arg_HASHES)  # a fifth of what compiling takes; nothing here goes over every number
      target_compile_options(${name} PRIVATE -O1)
    endif()
  endif()
endfunction()

# In two units, or more of 24 files at most. Not those that Highway includes once for every instruction set.
# That files of a library share no names which would meet there is held by an architecture test.
function(assay_unite name sources apart)
  set(count 0)
  foreach(source IN LISTS sources)
    file(STRINGS ${source} many_targets REGEX "foreach_target.h" LIMIT_COUNT 1)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE relative)
    if(many_targets OR relative IN_LIST apart)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    else()
      math(EXPR count "${count} + 1")
    endif()
  endforeach()
  math(EXPR units "(${count} + 23) / 24")
  if(units LESS 2)
    set(units 2)
  endif()
  math(EXPR batch "(${count} + ${units} - 1) / ${units}")
  if(batch GREATER 1)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# Every test file goes through the same headers, which take longer to compile than what it holds.
function(assay_unite_tests name sources)
  set(rule ${PROJECT_SOURCE_DIR}/cmake/unite_tests.awk)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${rule})
  execute_process(COMMAND awk -v most=8 -f ${rule} ${sources} OUTPUT_VARIABLE placed COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" placed "${placed}")
  foreach(line IN LISTS placed)
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${name}_${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(assay_tests name)
  cmake_parse_arguments(arg "" "TIMEOUT" "DIRECTORIES;LINK" ${ARGN})
  set(sources)
  foreach(folder IN LISTS arg_DIRECTORIES)
    file(GLOB_RECURSE more CONFIGURE_DEPENDS ${folder}/*_test.cpp)
    list(APPEND sources ${more})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE assay_settings assay_test_support ${arg_LINK} GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O1)  # tests are compiled more often than run
  set_target_properties(${name} PROPERTIES ASSAY_COMMAND ON)
  if(ASSAY_UNITY)
    assay_unite_tests(${name} "${sources}")
  endif()
  add_dependencies(${name} assay)
  set(seconds 300)
  if(ASSAY_SANITIZE)  # ten times the work, on whatever machine
    set(seconds 900)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT ${seconds})
endfunction()
