# Compiler and linker settings of the whole build.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "kind of build" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")

# -fPIC everywhere, programs included: all units then share one precompiled header.
# Contracted expressions (fused multiply-adds) round differently from what is written.
add_compile_options(-march=x86-64-v2 -fPIC -ffp-contract=off -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Below 1 GB there is nothing to collect: the compiler would go through its whole heap, the precompiled header's part,
  # too, each time it has grown by a part (a tenth of the time of src/, a quarter of that of tests).
  add_compile_options("SHELL:--param ggc-min-heapsize=1000000")
  # These see faults in the standard library's own inlined code (g++ 12, bug 105651 and its like).
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  if(LAMINA_SANITIZE)
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Loops are allowed to be vectorised; where clang cannot, that is no fault.
  add_compile_options(-Wno-pass-failed)
endif()
if(LAMINA_WERROR)
  add_compile_options(-Werror)
endif()
if(LAMINA_SANITIZE)
  add_compile_options(-fsanitize=${LAMINA_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${LAMINA_SANITIZE})
endif()

# lld, where scripts/bootstrap --sanitize has installed it, when debug information makes links slow. Not mold 1.10: its
# link of c_interface_tests with the address sanitizer does not end, and its RELRO may begin in a page that is not mapped.
find_program(LAMINA_LLD ld.lld)
if(LAMINA_LLD AND (LAMINA_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug"))
  add_link_options(-fuse-ld=lld)
endif()
add_link_options(-Wl,--as-needed)

find_program(LAMINA_CCACHE ccache)
if(LAMINA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache needs for precompiled headers.
  set(ccache CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${LAMINA_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${ccache})
  # For targets that precompile headers of the project: g++ knows a header of a precompiled one by its text, comments
  # included, so the text must decide whether a kept result fits, not what the preprocessor makes of it.
  set(LAMINA_LAUNCHER_BY_TEXT ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 ${ccache})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
