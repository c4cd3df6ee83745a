#pragma once
/// Numbers and names of threads, as the system shows them.
#include <string>

namespace lamina {

/// The number of the calling thread.
int thread_number() noexcept;
/// What a thread of this process is called ("lamina-s0"); empty for one that has ended.
std::string thread_name(int number);

}  // namespace lamina
