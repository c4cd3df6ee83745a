# The licences of the libraries whose code is in lamina's packages, a file for each: NAME.txt. Those of packages of the
# distribution are where it keeps them; oneDNN brings its own.

# lamina_install_licences(COMPONENT FOLDER NAME=PACKAGE...)
function(lamina_install_licences component folder)
  set(excluded)
  if(NOT component STREQUAL "library") # which every installation has
    set(excluded EXCLUDE_FROM_ALL)
  endif()
  foreach(part IN LISTS ARGN)
    string(REGEX MATCH "^([^=]+)=(.+)$" found ${part})
    set(name ${CMAKE_MATCH_1})
    set(file ${CMAKE_MATCH_2})
    if(NOT IS_ABSOLUTE ${file})
      set(file /usr/share/doc/${file}/copyright)
    endif()
    if(EXISTS ${file})
      install(FILES ${file} DESTINATION ${folder} RENAME ${name}.txt COMPONENT ${component} ${excluded})
    else()
      message(STATUS "no licence of ${name} in ${file}: packages made here will lack it")
    endif()
  endforeach()
endfunction()

# Compiled into the library, or into the command.
set(LAMINA_INNER_LICENCES fmt=libfmt-dev pugixml=libpugixml-dev protozero=libprotozero-dev highway=libhwy-dev
    xxhash=libxxhash-dev re2=libre2-dev nlohmann_json=nlohmann-json3-dev CLI11=libcli11-dev)
# Shared libraries that wheels and archives have inside.
set(LAMINA_BUNDLED_LICENCES onetbb=libtbb-dev libpng=libpng-dev libjpeg-turbo=libjpeg62-turbo-dev)
if(EXISTS ${PROJECT_SOURCE_DIR}/.deps/onednn/LICENSE)
  list(APPEND LAMINA_BUNDLED_LICENCES onednn=${PROJECT_SOURCE_DIR}/.deps/onednn/LICENSE
       onednn-third-party=${PROJECT_SOURCE_DIR}/.deps/onednn/THIRD-PARTY-PROGRAMS)
endif()
