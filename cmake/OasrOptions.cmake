# Compiler settings shared by every target of the project, as one interface target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(OASR_CCACHE ccache)
if(OASR_CCACHE)
  # Ninja asks for the list of headers anyway: taking it from there saves preprocessing every source that is
  # not in the cache. What is sloppy about precompiled headers (ccache's manual) does not matter here: no source
  # defines a macro for them or reads the time.
  set(launcher env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${OASR_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

add_library(oasr_options INTERFACE)
# The flags of the C++ compiler; those of nvcc are in OasrCuda.cmake.
function(oasr_cxx_options)
  foreach(flag IN LISTS ARGN)
    target_compile_options(oasr_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:${flag}>)
  endforeach()
endfunction()
oasr_cxx_options(
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
  # Results are promised bit for bit: no contraction of a*b+c, no fast math anywhere.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  oasr_cxx_options(-Wno-restrict)  # false alarms of g++ 12 in std::string
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The binary runs on x86-64-v2; hot kernels have files of their own and are chosen at run time.
  oasr_cxx_options(-march=x86-64-v2)
endif()
if(OASR_WERROR)
  oasr_cxx_options(-Werror)
endif()
if(OASR_SANITIZE)
  oasr_cxx_options(-fsanitize=address,undefined -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(oasr_options INTERFACE -fsanitize=address,undefined)
endif()
if(OASR_BUILD_FUZZ)
  oasr_cxx_options(-fsanitize=fuzzer-no-link)
endif()
