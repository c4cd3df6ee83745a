#pragma once
/// Marks what the shared library exports.
#if defined(__cplusplus) && __cplusplus < 202002L && !defined(_MSVC_LANG)
#error "lamina's headers need C++20: compile with -std=c++20 (g++ 12, clang 16 or later)"
#endif
#if defined(_WIN32)
#define LAMINA_API
#else
#define LAMINA_API __attribute__((visibility("default")))
#endif
