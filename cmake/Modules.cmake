# The modules of src/. Each is a static library lamina_NAME of all its .cc files, and links modules below it only.

# lamina_module(NAME BELOW modules... USES libraries...), or for one that has the modules below it from the shared
# library: lamina_module(NAME CALLS modules... USES libraries...)
function(lamina_module module)
  cmake_parse_arguments(arg "" "" "BELOW;CALLS;USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${module}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/src/tool/main\\.cc$")
  list(TRANSFORM arg_BELOW PREPEND lamina_)
  if(NOT sources)
    add_library(lamina_${module} INTERFACE)
    target_link_libraries(lamina_${module} INTERFACE ${arg_BELOW} ${arg_USES})
    return()
  endif()
  add_library(lamina_${module} STATIC ${sources})
  target_link_libraries(lamina_${module} PUBLIC ${arg_BELOW} ${arg_USES})
  lamina_share_header(lamina_${module})
  lamina_hot_units(hot ${sources})
  list(REMOVE_ITEM sources ${hot})
  lamina_unite(lamina_${module} 24 ${sources})
  if(NOT arg_CALLS)
    set_property(GLOBAL APPEND PROPERTY LAMINA_MODULES lamina_${module})
  endif()
endfunction()

# Files whose loops a run or a load spends its time in. They get all optimisations (the others would only compile
# longer), and each is compiled by itself.
set(LAMINA_HOT_FILES
  "/kernels/native/[a-z/]+/([a-z_]+\\.simd|run|generic|copies|packing|matching|winograd_weights|popcount)\\.cc$")
# Files with loops over values, which are compiled by themselves, too: what the compiler makes of such a loop must not
# depend on its neighbours.
set(LAMINA_SINGLE_FILES
  "/kernels/native/.*(\\.simd|/(gather|generation|lrn|scatter|small_float|strided|topk|walk|winograd))\\.cc$")

# OUT is set to the hot files among the sources.
function(lamina_hot_units out)
  list(FILTER ARGN INCLUDE REGEX ${LAMINA_HOT_FILES})
  set(${out} ${ARGN} PARENT_SCOPE)
  if(NOT ARGN)
    return()
  endif()
  # At -O3 g++ 12 takes the value of an empty std::optional for one that may be read.
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS
    $<$<CONFIG:Release>:-O3> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # With a precompiled header g++ 12 takes that header's -O2 for all behind a target pragma, and leaves plain loops scalar
  # and sums of products in memory.
  list(FILTER ARGN INCLUDE REGEX "/(stages/(integer\\.simd|generic)|gemm/lines\\.simd)\\.cc$")
  set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Compiles sources of a target several at once, each folder in units of like size with up to LIMIT files: a header is
# then read once for a unit, and a template that several files use is made once. The limit keeps a compiler below 1.5 GB
# of memory, and leaves units for several processors. It counts files, so that a change of one does not move others
# between units. The folders of native kernels are small, so all of them count as one.
function(lamina_unite target limit)
  if(NOT LAMINA_UNITY)
    return()
  endif()
  set(folders)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} first LIMIT_COUNT 1 REGEX "^#(define|include)")
    if(first MATCHES "^#define" OR source MATCHES ${LAMINA_SINGLE_FILES}) # a macro is for the headers that follow
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(REGEX REPLACE "^src/" "" folder ${folder})
    if(folder MATCHES "^kernels/native")
      set(folder kernels/native)
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" id)
    list(APPEND folders ${id})
    list(APPEND sources_${id} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(id IN LISTS folders)
    list(LENGTH sources_${id} files)
    math(EXPR units "(${files} + ${limit} - 1) / ${limit}")
    set(at 0)
    foreach(source IN LISTS sources_${id})
      math(EXPR unit "${at} * ${units} / ${files}")
      set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${id}_${unit})
      math(EXPR at "${at} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# The precompiled header is made once, by lamina_headers, for all that are compiled with the same flags.
function(lamina_share_header target)
  if(NOT LAMINA_SANITIZE) # with them, the header takes longer to load than it saves
    target_precompile_headers(${target} REUSE_FROM lamina_headers)
  endif()
endfunction()
