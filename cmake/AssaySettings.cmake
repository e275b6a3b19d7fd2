set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

# The hot kernels ask for -O3 themselves; the rest compiles a third faster without it.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

option(ASSAY_WERROR "Treat warnings as errors (scripts/test does)" OFF)
option(ASSAY_UNITY "Compile several files of a folder at once: a fifth of the work, no small rebuilds" OFF)
option(ASSAY_FEW_SIMD "Compile loops for AVX2 and SSE2 only, not for AVX-512: not for a program that others run" OFF)
option(ASSAY_FUZZ "Build the libFuzzer targets under tests/fuzz (needs clang)" OFF)
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers for every target, e.g. address,undefined")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Paths below this checkout are made relative first, so that clones share what one of them has compiled.
  set(ASSAY_CCACHE ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE_PROGRAM})
endif()
if(ASSAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ASSAY_CCACHE})
endif()

# Carried by every target of ours, by none of the libraries we use.
add_library(assay_settings INTERFACE)
target_include_directories(assay_settings INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/assay>)
target_compile_options(assay_settings INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra $<$<BOOL:${ASSAY_WERROR}>:-Werror>>>)
# GCC 12 sees overlapping copies inside std::string where there are none (gcc.gnu.org/PR105651).
target_compile_options(assay_settings INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>>)
# A designated initializer that names some members leaves the others at their defaults: that is its point.
target_compile_options(assay_settings INTERFACE
  $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>>)
# Numerics are promised to the bit: no contraction of a*b+c that the source does not ask for.
target_compile_options(assay_settings INTERFACE $<BUILD_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>>)
target_compile_definitions(assay_settings INTERFACE
  $<BUILD_INTERFACE:_FILE_OFFSET_BITS=64> $<BUILD_INTERFACE:ASSAY_VERSION="${PROJECT_VERSION}">)
if(ASSAY_FEW_SIMD AND NOT ASSAY_SANITIZE)  # under AddressSanitizer simd_disabled_targets.h does so itself
  target_compile_definitions(assay_settings INTERFACE $<BUILD_INTERFACE:ASSAY_FEW_SIMD_TARGETS>)
endif()
if(ASSAY_UNITY)
  # GCC takes a file that is included for a header, and unnamed namespaces in it for a mistake; and sees a
  # std::optional that was asked before as one that was not.
  target_compile_options(assay_settings INTERFACE
    $<BUILD_INTERFACE:$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage;-Wno-maybe-uninitialized>>)
endif()
if(ASSAY_SANITIZE)
  target_compile_options(assay_settings INTERFACE
    $<BUILD_INTERFACE:-fsanitize=${ASSAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  # What goes over every number leaves to AddressSanitizer which memory is touched, what goes over little is not
  # optimized: together that halves the time to compile.
  target_compile_options(assay_settings INTERFACE
    $<BUILD_INTERFACE:$<$<BOOL:$<TARGET_PROPERTY:ASSAY_LOOPS>>:-fno-sanitize=null$<COMMA>pointer-overflow>>
    $<BUILD_INTERFACE:$<$<BOOL:$<TARGET_PROPERTY:ASSAY_COMMAND>>:-O0>>)
  target_link_options(assay_settings INTERFACE $<BUILD_INTERFACE:-fsanitize=${ASSAY_SANITIZE}>)
endif()
if(ASSAY_FUZZ)
  target_compile_options(assay_settings INTERFACE
    $<BUILD_INTERFACE:$<$<NOT:$<BOOL:$<TARGET_PROPERTY:ASSAY_LOOPS>>>:-fsanitize=fuzzer-no-link>>)
endif()
