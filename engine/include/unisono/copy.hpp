// Copying what will not be read soon.
#pragma once

#include <cstddef>

namespace unisono {

// Copies as memcpy does. The memcpy of glibc uses `rep movsb` for more than about 2 KiB, which on some processors (Zen 4) takes
// five to ten times as long where the target lies a little ahead of the source, counted modulo 4096: a matter of luck.
void copy_bytes(void* to, const void* from, std::size_t bytes);

// Copies as memcpy does, but past the caches where the processor can: the copy does not push out of them what is
// needed sooner, and memory is not read before it is written. Other processors see the copy before they see what the
// caller stores afterwards. Any alignment, any length; the two do not overlap.
void copy_streaming(void* to, const void* from, std::size_t bytes);

}  // namespace unisono
