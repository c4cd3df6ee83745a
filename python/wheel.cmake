# What a wheel is made of: the component "python". scikit-build-core installs it after a build of its own
# (`pip install .`), or scripts/wheel takes it from a build that is there (`make wheel`).
# SKBUILD_..._DIR are the folders of a wheel; in the second case folders of the same names are made.
if(SKBUILD)
  set(metadata ${SKBUILD_METADATA_DIR})
  set(share ${SKBUILD_DATA_DIR}/share)
else()
  set(metadata metadata)
  set(share data/share)
  install(DIRECTORY lamina DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
endif()

install(TARGETS lamina_python_module DESTINATION lamina COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${package}/_lamina.pyi DESTINATION lamina COMPONENT python EXCLUDE_FROM_ALL)
# A wheel has no links: the library has only the name that it is loaded by.
install(TARGETS lamina LIBRARY DESTINATION lamina/lib COMPONENT python NAMELINK_SKIP EXCLUDE_FROM_ALL)
install(CODE "
  set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lamina/lib\")
  file(REMOVE \"\${folder}/$<TARGET_SONAME_FILE_NAME:lamina>\")
  file(RENAME \"\${folder}/$<TARGET_FILE_NAME:lamina>\" \"\${folder}/$<TARGET_SONAME_FILE_NAME:lamina>\")"
  COMPONENT python EXCLUDE_FROM_ALL)
if(TARGET lamina_command)
  install(FILES _lamina_command.py DESTINATION . COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS lamina_command DESTINATION lamina/bin COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${share} COMPONENT python EXCLUDE_FROM_ALL)
endif()

# `pip install .` leaves libraries of the distribution where they are, but oneDNN is ours. `make wheel` has all of them
# put in by auditwheel, under names that no other package's copy can have.
if(SKBUILD AND LAMINA_OWN_ONEDNN)
  install(PROGRAMS ${LAMINA_OWN_ONEDNN}/libdnnl_intel_shim.so DESTINATION lamina/lib COMPONENT python EXCLUDE_FROM_ALL)
  file(REAL_PATH ${LAMINA_OWN_ONEDNN}/libdnnl.so.3 file)
  install(PROGRAMS ${file} DESTINATION lamina/lib RENAME libdnnl.so.3 COMPONENT python EXCLUDE_FROM_ALL)
endif()

file(GLOB nanobind_licence ${NB_DIR}/../nanobind-*.dist-info/licenses/LICENSE)
if(nanobind_licence)
  list(GET nanobind_licence 0 nanobind_licence)
  set(nanobind_licence nanobind=${nanobind_licence})
endif()
lamina_install_licences(python ${metadata}/licenses/libraries ${LAMINA_INNER_LICENCES} ${LAMINA_BUNDLED_LICENCES} ${nanobind_licence})
