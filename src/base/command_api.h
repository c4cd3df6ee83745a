#pragma once
/// Marks functions of this module that the command calls, too: the library exports them for it.
#include "lamina/export.h"

/// Such functions have the version LAMINA_COMMAND in the library. They are no part of the interface, have no
/// header that is installed, and change at any time: command and library are built and installed together.
#define LAMINA_COMMAND_API LAMINA_API
