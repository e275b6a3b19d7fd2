include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(assay_libraries GLOBAL PROPERTY ASSAY_LIBRARIES)
install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS assay_settings ${assay_libraries} EXPORT assay-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(folder core verify paramcount convert refimpl)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay
          FILES_MATCHING PATTERN "*.h")
endforeach()
# What a plugin is written against: <assay/kernels/plugin.h>, C, nothing to link.
install(FILES ${PROJECT_SOURCE_DIR}/kernels/plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/kernels)
install(EXPORT assay-targets NAMESPACE assay:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
configure_package_config_file(cmake/assay-config.cmake.in ${PROJECT_BINARY_DIR}/assay-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/assay-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/assay-config.cmake ${PROJECT_BINARY_DIR}/assay-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
