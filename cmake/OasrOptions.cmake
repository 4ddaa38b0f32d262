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
  set(CMAKE_CXX_COMPILER_LAUNCHER ${OASR_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${OASR_CCACHE})
endif()

add_library(oasr_options INTERFACE)
target_compile_options(oasr_options INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
  # Results are promised bit for bit: no contraction of a*b+c, no fast math anywhere.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(oasr_options INTERFACE -Wno-restrict)  # false alarms of g++ 12 in std::string
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The binary runs on x86-64-v2; hot kernels have files of their own and are chosen at run time.
  target_compile_options(oasr_options INTERFACE -march=x86-64-v2)
endif()
if(OASR_WERROR)
  target_compile_options(oasr_options INTERFACE -Werror)
endif()
if(OASR_SANITIZE)
  target_compile_options(oasr_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  target_link_options(oasr_options INTERFACE -fsanitize=address,undefined)
endif()
if(OASR_BUILD_FUZZ)
  target_compile_options(oasr_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
