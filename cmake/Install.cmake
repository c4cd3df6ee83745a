# Where things go: the library, its public headers, the CMake package, the pkg-config file, the command.
# A oneDNN from .deps is installed with them, in a folder of its own; any other is taken to be there already.
include(CMakePackageConfigHelpers)
set(lamina_package ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)
set(lamina_private ${CMAKE_INSTALL_LIBDIR}/lamina)

cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR}
           OUTPUT_VARIABLE lib_from_bin)
set_target_properties(lamina PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/lamina")
install(TARGETS lamina EXPORT lamina COMPONENT library)
install(EXPORT lamina NAMESPACE lamina:: FILE laminaTargets.cmake DESTINATION ${lamina_package} COMPONENT library)
install(DIRECTORY include/lamina DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
if(TARGET lamina_command)
  set_target_properties(lamina_command PROPERTIES
    INSTALL_RPATH "$ORIGIN/${lib_from_bin};$ORIGIN/${lib_from_bin}/lamina")
  install(TARGETS lamina_command COMPONENT tool)
  set(pages ${PROJECT_BINARY_DIR}/share)
  install(DIRECTORY ${pages}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tool)
  install(DIRECTORY ${pages}/bash-completion DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tool)
  install(DIRECTORY ${pages}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT zsh)
endif()

if(LAMINA_OWN_ONEDNN)
  set(onednn ${PROJECT_SOURCE_DIR}/.deps/onednn)
  file(REAL_PATH ${LAMINA_OWN_ONEDNN}/libdnnl.so.3 onednn_library)
  install(PROGRAMS ${onednn_library} DESTINATION ${lamina_private} RENAME libdnnl.so.3 COMPONENT library)
  install(PROGRAMS ${LAMINA_OWN_ONEDNN}/libdnnl_intel_shim.so DESTINATION ${lamina_private} COMPONENT library)
  install(FILES ${onednn}/LICENSE ${onednn}/THIRD-PARTY-PROGRAMS
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/onednn COMPONENT library)
else()
  set_target_properties(lamina PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  if(TARGET lamina_command)
    set_target_properties(lamina_command PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endif()

configure_package_config_file(cmake/laminaConfig.cmake.in ${PROJECT_BINARY_DIR}/laminaConfig.cmake
                              INSTALL_DESTINATION ${lamina_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/laminaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/laminaConfig.cmake ${PROJECT_BINARY_DIR}/laminaConfigVersion.cmake
        DESTINATION ${lamina_package} COMPONENT library)

# The build tree is a package too: CMAKE_PREFIX_PATH=build/release.
export(EXPORT lamina NAMESPACE lamina:: FILE ${PROJECT_BINARY_DIR}/laminaTargets.cmake)

cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE prefix_from_pc)
configure_file(cmake/lamina.pc.in ${PROJECT_BINARY_DIR}/lamina.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lamina.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
