// The unit that the precompiled header is made with.
#include "base/pch.h"
