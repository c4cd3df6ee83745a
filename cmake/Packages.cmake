# The Debian package and the archive (make deb, make archive), by CPack. PackageParts.cmake, which CPack reads once for
# each of them, says which components they have.
set(CPACK_PACKAGE_NAME lamina)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR lamina)
set(CPACK_PACKAGE_CONTACT "the lamina developers <lamina@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION "lamina is a command and a C++ library that reads trained neural networks (ONNX, OpenVINO IR,\
 Caffe, TensorFlow), optimises them, runs them on the CPU, and shows what it did to each layer.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME lamina-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackageParts.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LAMINA_OWN_ONEDNN})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

# "bundle": libraries of the distribution, for machines that do not have them. "debian": files in Debian's places.
lamina_install_licences(library ${CMAKE_INSTALL_DOCDIR}/libraries ${LAMINA_INNER_LICENCES})
lamina_install_licences(bundle ${CMAKE_INSTALL_DOCDIR}/libraries ${LAMINA_BUNDLED_LICENCES})
set(of_the_system "ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|librt|libstdc\\\\+\\\\+|libz")
if(TARGET lamina_command)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES LIBRARIES \"$<TARGET_FILE:lamina>\" EXECUTABLES \"$<TARGET_FILE:lamina_command>\"
         PRE_EXCLUDE_REGEXES \"^(${of_the_system}|libdnnl.*|liblamina)\\\\.so\" RESOLVED_DEPENDENCIES_VAR found)
    set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${lamina_private}\")
    file(MAKE_DIRECTORY \"\${folder}\")
    foreach(library IN LISTS found)
      cmake_path(GET library FILENAME name)
      file(REAL_PATH \"\${library}\" file)
      file(COPY_FILE \"\${file}\" \"\${folder}/\${name}\")
    endforeach()" COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT debian EXCLUDE_FROM_ALL)
if(TARGET lamina_command)
  install(FILES ${PROJECT_BINARY_DIR}/share/zsh/site-functions/_lamina DESTINATION share/zsh/vendor-completions
          COMPONENT debian EXCLUDE_FROM_ALL)
endif()

include(CPack)
