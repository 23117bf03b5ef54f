// Copying what will not be read soon.
#pragma once

#include <cstddef>

namespace unisono {

// Copies as memcpy does, but past the caches where the processor can: the copy does not push out of them what is
// needed sooner, and memory is not read before it is written. Other processors see the copy before they see what the
// caller stores afterwards. Any alignment, any length; the two do not overlap.
void copy_streaming(void* to, const void* from, std::size_t bytes);

}  // namespace unisono
