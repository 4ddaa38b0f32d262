# oasr_unity(target): with OASR_UNITY the target's sources are compiled several at once, which makes a first build
#   faster: what they include is compiled once for them. Sources with definitions or options
#   of their own stay alone. What unnamed namespaces hold has to have a name of its own in the whole target.
function(oasr_unity target)
  if(OASR_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${OASR_UNITY_BATCH})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # It is about types of headers, and takes every source that another file includes for a header.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# oasr_add_module(NAME [ALONE] SOURCES … DEPS … LIBS …)
#   An OBJECT library oasr_NAME from src/NAME. DEPS are the modules that it may include: the only
#   declaration of the layering, compared with the #includes by tools/check_layers.py. ALONE: every source is
#   compiled by itself in every build.
function(oasr_add_module name)
  cmake_parse_arguments(ARG "ALONE" "" "SOURCES;DEPS;LIBS" ${ARGN})
  set(target oasr_${name})
  add_library(${target} OBJECT ${ARG_SOURCES})
  if(NOT ARG_ALONE)
    oasr_unity(${target})
  endif()
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE oasr_options PUBLIC ${ARG_LIBS})
  set(closure ${name})
  foreach(dep IN LISTS ARG_DEPS)
    get_property(inherited GLOBAL PROPERTY OASR_CLOSURE_${dep})
    list(APPEND closure ${inherited})
  endforeach()
  list(REMOVE_DUPLICATES closure)
  set_property(GLOBAL PROPERTY OASR_CLOSURE_${name} ${closure})
  set_property(GLOBAL PROPERTY OASR_LIBS_${name} ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY OASR_MODULES ${name})
endfunction()

# oasr_set_isa("FLAGS" file…): compile kernel files for one instruction set, which precompiled headers are not for.
function(oasr_set_isa flags)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# oasr_link_modules(target module…): link the objects of modules and of all that they depend on.
function(oasr_link_modules target)
  set(all)
  foreach(module IN LISTS ARGN)
    get_property(closure GLOBAL PROPERTY OASR_CLOSURE_${module})
    list(APPEND all ${closure})
  endforeach()
  list(REMOVE_DUPLICATES all)
  list(TRANSFORM all PREPEND oasr_)
  target_link_libraries(${target} PRIVATE ${all} oasr_options)
endfunction()

# oasr_light_optimisation(target): -O1 in a release build, for code that is compiled once and runs for a moment. That
#   is a quarter less to compile for tests, whose own code gets it; what they test is compiled as it is shipped.
function(oasr_light_optimisation target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms of g++ 12 at -O1, where it inlines one half of a pair: string(60, 'a') + "!" into the
    # short buffer of a string, a replaced operator delete against an operator new that is not inlined.
    target_compile_options(${target} PRIVATE
      "$<$<CONFIG:Release>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-mismatched-new-delete>")
  endif()
endfunction()

# oasr_test_headers(target): the headers of GoogleTest and of the standard library that tests share are compiled
#   once for all of them, which takes a quarter off a test. They belong to a program of the tests' own options.
#   Sources of the library have none. That headers are complete is for tools/check_headers.py to show.
function(oasr_test_headers target)
  if(NOT TARGET oasr_test_headers)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "int main() {}\n")
    add_executable(oasr_test_headers ${CMAKE_BINARY_DIR}/test_headers.cc)
    target_link_libraries(oasr_test_headers PRIVATE oasr_options GTest::gmock GTest::gtest_main)
    oasr_light_optimisation(oasr_test_headers)
    set(headers <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp> <algorithm> <array> <charconv> <chrono> <cmath>
      <cstring> <filesystem> <fstream> <functional> <limits> <map> <memory> <optional> <random> <ranges> <set> <span>
      <sstream> <string> <string_view> <unordered_map> <variant> <vector>)
    list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(oasr_test_headers PRIVATE ${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM oasr_test_headers)
endfunction()

# oasr_add_test(NAME [ALONE] MODULES … SOURCES … [LABELS …] [TIMEOUT s]): a GoogleTest program. ALONE: as in
#   oasr_add_module.
function(oasr_add_test name)
  if(NOT OASR_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "ALONE" "TIMEOUT" "MODULES;SOURCES;LABELS" ${ARGN})
  set(target oasr_test_${name})
  add_executable(${target} ${ARG_SOURCES})
  list(LENGTH ARG_SOURCES sources)
  if(sources GREATER 1 AND NOT ARG_ALONE)
    oasr_unity(${target})
  endif()
  oasr_link_modules(${target} ${ARG_MODULES} testing)
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
  oasr_light_optimisation(${target})
  oasr_test_headers(${target})
  add_test(NAME ${name} COMMAND ${target})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # Where nothing is known of earlier runs, what may take long starts first.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} COST ${ARG_TIMEOUT}
    SKIP_REGULAR_EXPRESSION "PASSED  \\] 0 tests\\.\n.*SKIPPED \\] [0-9]+ test")
endfunction()

# oasr_add_fuzz(NAME MODULES … SOURCES … SEEDS folder): a source with LLVMFuzzerTestOneInput.
#   With OASR_BUILD_FUZZ (clang): the libFuzzer program fuzz/NAME, listed in fuzz/targets.txt for
#   scripts/fuzz.sh. In a build with tests: the test fuzz_seeds_NAME runs every checked-in seed
#   (relative to the source folder) once, so that a finding, kept as a seed, stays fixed.
function(oasr_add_fuzz name)
  cmake_parse_arguments(ARG "" "SEEDS" "MODULES;SOURCES" ${ARGN})
  get_filename_component(seeds ${ARG_SEEDS} ABSOLUTE)
  if(NOT IS_DIRECTORY ${seeds})
    message(FATAL_ERROR "fuzz target ${name}: there is no seed folder ${seeds}")
  endif()
  if(OASR_BUILD_FUZZ)
    set(target oasr_fuzz_${name})
    add_executable(${target} ${ARG_SOURCES})
    oasr_link_modules(${target} ${ARG_MODULES})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    set_property(GLOBAL APPEND_STRING PROPERTY OASR_FUZZ_TARGETS "${name} ${seeds}\n")
  elseif(OASR_BUILD_TESTS)
    set(target oasr_fuzz_seeds_${name})
    if(NOT TARGET oasr_run_seeds)  # its main() is compiled once
      add_library(oasr_run_seeds OBJECT ${PROJECT_SOURCE_DIR}/tests/fuzz/run_seeds.cc)
      target_include_directories(oasr_run_seeds PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
      target_link_libraries(oasr_run_seeds PRIVATE oasr_options)
    endif()
    add_executable(${target} ${ARG_SOURCES} $<TARGET_OBJECTS:oasr_run_seeds>)
    oasr_link_modules(${target} ${ARG_MODULES})
    add_test(NAME fuzz_seeds_${name} COMMAND ${target} ${seeds})
    set_tests_properties(fuzz_seeds_${name} PROPERTIES LABELS "unit;fuzz" TIMEOUT 120)
  endif()
endfunction()

# oasr_write_fuzz_targets(): call once, after all folders.
function(oasr_write_fuzz_targets)
  if(OASR_BUILD_FUZZ)
    get_property(targets GLOBAL PROPERTY OASR_FUZZ_TARGETS)
    file(WRITE ${CMAKE_BINARY_DIR}/fuzz/targets.txt "${targets}")
  endif()
endfunction()
