# The kernels for NVIDIA GPUs: built where nvcc is found, never needed. Without them every command works, and
# `compare kernels` says of a CUDA kernel why it is skipped.
set(ASSAY_CUDA AUTO CACHE STRING "Build the CUDA kernels: AUTO (where nvcc is found), ON, OFF")
set_property(CACHE ASSAY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ASSAY_HAS_CUDA OFF)
if(ASSAY_CUDA)  # AUTO and ON
  find_program(ASSAY_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(ASSAY_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${ASSAY_NVCC})
  endif()
  # sm_80 code also runs on 8.6 and 8.7, sm_89 has e4m3 tensor cores, sm_90a wgmma. What comes after Hopper
  # compiles the PTX when the program starts: that of plain 9.0, since 9.0a's is for Hopper only.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90a-real 90-virtual)
  endif()
  if(ASSAY_CUDA STREQUAL "AUTO")
    include(CheckLanguage)
    check_language(CUDA)
  endif()
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    # CMake 3.25 does not know of C++20 under nvcc, which has it since CUDA 12.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    if(ASSAY_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${ASSAY_CCACHE})
    endif()
    set(ASSAY_HAS_CUDA ON)
  elseif(ASSAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ASSAY_CUDA=ON, and no nvcc: put it in PATH or set CUDACXX")
  endif()
endif()
message(STATUS "CUDA kernels: ${ASSAY_HAS_CUDA}")
