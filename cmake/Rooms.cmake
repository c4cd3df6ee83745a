# The rooms of src/. Each is a static library lamina_NAME of all its .cc files, and links rooms below it only.

# lamina_room(NAME BELOW rooms... USES libraries...)
function(lamina_room room)
  cmake_parse_arguments(arg "" "" "BELOW;USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/src/tool/main\\.cc$")
  list(TRANSFORM arg_BELOW PREPEND lamina_)
  if(NOT sources)
    add_library(lamina_${room} INTERFACE)
    target_link_libraries(lamina_${room} INTERFACE ${arg_BELOW} ${arg_USES})
    return()
  endif()
  add_library(lamina_${room} STATIC ${sources})
  target_link_libraries(lamina_${room} PUBLIC ${arg_BELOW} ${arg_USES})
  lamina_share_header(lamina_${room})
  lamina_hot_units(${sources})
  set_property(GLOBAL APPEND PROPERTY LAMINA_ROOMS lamina_${room})
endfunction()

# Units whose loops a run or a load spends its time in, by file name, get all optimisations; the others would only compile longer.
function(lamina_hot_units)
  list(FILTER ARGN INCLUDE REGEX
       "/kernels/native/[a-z/]+/([a-z_]+\\.simd|run|generic|copies|packing|matching|winograd_weights|popcount)\\.cc$")
  # At -O3 g++ 12 takes the value of an empty std::optional for one that may be read.
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS
    $<$<CONFIG:Release>:-O3> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # With a precompiled header g++ 12 takes that header's -O2 for all behind a target pragma, and leaves plain loops scalar.
  list(FILTER ARGN INCLUDE REGEX "/stages/(integer\\.simd|generic)\\.cc$")
  set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# The precompiled header is made once, by lamina_headers, for all that are compiled with the same flags.
function(lamina_share_header target)
  if(NOT LAMINA_SANITIZE) # with them, the header takes longer to load than it saves
    target_precompile_headers(${target} REUSE_FROM lamina_headers)
  endif()
endfunction()
