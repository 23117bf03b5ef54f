// Copies of memory, into the caches or past them.
#pragma once

#include <cstddef>

namespace unisono {

// Copies as memcpy does. For more than about 2 KiB, the memcpy of glibc uses `rep movsb`, which on some processors (Zen
// 4) takes five to ten times as long if the target lies slightly ahead of the source modulo 4096.
void copy_bytes(void* to, const void* from, std::size_t bytes);

// Copies as memcpy does, but with stores that bypass the caches if the processor has them: the copy evicts nothing that
// is needed sooner, and memory is not read before it is written. Other processors see the copy before they see later
// stores of the caller. Any alignment and length; the ranges must not overlap.
void copy_streaming(void* to, const void* from, std::size_t bytes);

}  // namespace unisono
