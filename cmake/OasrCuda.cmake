# OASR_WITH_CUDA: whether kernels for NVIDIA GPUs are built. Without them src/device/gpu_absent.cc and
# src/kernels/cuda_absent.cc take their place.
include(OasrCudaArchitectures)
set(OASR_WITH_CUDA OFF)
if(NOT OASR_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  oasr_check_cuda_architectures(${OASR_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_ARCHITECTURES ${OASR_CUDA_ARCHITECTURES})
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(OASR_WITH_CUDA ON)
  elseif(OASR_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OASR_CUDA is ON, but there is no nvcc: install the CUDA toolkit, or set CUDACXX")
  endif()
endif()
if(OASR_WITH_CUDA)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  if(OASR_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${OASR_CCACHE})
  endif()
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc 13
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  # As on the host: results are promised bit for bit.
  target_compile_options(oasr_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -ftz=false -prec-div=true -prec-sqrt=true --expt-relaxed-constexpr --diag-suppress=554
    -Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
endif()
message(STATUS "NVIDIA GPUs: ${OASR_WITH_CUDA}")
