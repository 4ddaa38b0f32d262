# The library `oasr` (liboasr.a): the objects of every module but `testing`, installed with the
# public headers and a CMake package, so that find_package(oasr) gives the target oasr::oasr.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(oasr STATIC)
add_library(oasr::oasr ALIAS oasr)
get_property(modules GLOBAL PROPERTY OASR_MODULES)
list(REMOVE_ITEM modules testing)
foreach(module IN LISTS modules)
  target_sources(oasr PRIVATE $<TARGET_OBJECTS:oasr_${module}>)
  get_property(libs GLOBAL PROPERTY OASR_LIBS_${module})
  # Header-only: nothing to link, and no reason to ask a user of the library for it.
  list(REMOVE_ITEM libs nlohmann_json::nlohmann_json)
  target_link_libraries(oasr PRIVATE ${libs})
endforeach()
target_compile_features(oasr PUBLIC cxx_std_20)
target_include_directories(oasr PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(OASR_SANITIZE)
  target_link_options(oasr INTERFACE -fsanitize=address,undefined)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/oasr)
install(TARGETS oasr EXPORT oasrTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/oasr DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT oasrTargets NAMESPACE oasr:: DESTINATION ${package_dir})
configure_package_config_file(cmake/oasrConfig.cmake.in oasrConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(oasrConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/oasrConfig.cmake ${PROJECT_BINARY_DIR}/oasrConfigVersion.cmake
  DESTINATION ${package_dir})
install(FILES LICENSE THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
