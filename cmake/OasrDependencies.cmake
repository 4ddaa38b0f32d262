# System libraries, by pkg-config or their own CMake packages (Debian names in scripts/setup.sh).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(CURL REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
pkg_check_modules(SNDFILE REQUIRED IMPORTED_TARGET sndfile)
pkg_check_modules(SOXR REQUIRED IMPORTED_TARGET soxr)
pkg_check_modules(LIBAV REQUIRED IMPORTED_TARGET libavformat libavcodec libavutil libswresample)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(YAMLCPP REQUIRED IMPORTED_TARGET yaml-cpp)
# Not its pkg-config file, which also names the trainer.
find_path(SENTENCEPIECE_INCLUDE sentencepiece_processor.h REQUIRED)
find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
add_library(Sentencepiece::Sentencepiece UNKNOWN IMPORTED)
set_target_properties(Sentencepiece::Sentencepiece PROPERTIES
  IMPORTED_LOCATION ${SENTENCEPIECE_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${SENTENCEPIECE_INCLUDE})
if(OASR_BUILD_TESTS)
  find_package(GTest REQUIRED)  # here, in the root: imported targets are seen from their folder down
endif()
