// A move: the sources are combined element by element, in order, and the result is stored to all destinations.
//
// Tile t of a part belongs to block t mod G, on every rank and in every move, so a block never touches the bytes of
// another block. Which thread of the block handles a byte depends on the alignment of the move; the interpreter
// therefore puts a barrier between two moves unless the second is marked as touching nothing that earlier moves of the
// step touch.
//
// Where all addresses agree modulo 16, thread i of the block moves the vector i of each tile, and the few bytes of a
// tile that are in no aligned vector are moved element by element. Otherwise all is moved element by element.
#pragma once

#include "encoded_moves.cuh"
#include "program.cuh"
#include "reductions.cuh"

namespace unisono_kernel {

// The element type and the reduction of this kernel.
using Element = UNISONO_DTYPE;
using Raw = Element::Raw;
constexpr Op OP = UNISONO_REDUCTION;
constexpr bool DIVISIBLE = OP == Op::sum && divisible<Element>;
constexpr u32 ELEMENT_BYTES = sizeof(Raw);
constexpr u32 VECTOR_ELEMENTS = elements_of<Element>;

constexpr u32 TILE_VECTORS = TILE_BYTES / VECTOR_BYTES;
constexpr u32 POINTER_GROUP = 4;  // addresses that are loaded from shared memory at a time

// What a sweep needs. The addresses of its sources and destinations stay in shared memory, to save registers.
struct Sweep {
    u32 pointer;  // index of the first address of the sources, then of the destinations
    u32 sources, destinations;
    u64 bytes;
    u32 divisor;
};

DEVICE void store_everywhere(u32 pointer, u32 destinations, u64 at, const Vector& value) {
    u32 d = 0;
    ROLLED for (; d + POINTER_GROUP <= destinations; d += POINTER_GROUP) {
        u64 to[POINTER_GROUP];
        UNROLL for (u32 i = 0; i < POINTER_GROUP; ++i) to[i] = shared.pointer[pointer + d + i] + at;
        UNROLL for (u32 i = 0; i < POINTER_GROUP; ++i) store_vector(to[i], value);
    }
    ROLLED for (; d < destinations; ++d) store_vector(shared.pointer[pointer + d] + at, value);
}

// Moves vectors of U tiles, `stride` bytes apart. All loads are issued before the first result is computed.
template <u32 S, u32 U, bool Divide>
DEVICE void move_vectors(const Sweep& sweep, u64 at, u32 stride) {
    Vector loaded[U][S];
    UNROLL for (u32 group = 0; group < S; group += POINTER_GROUP) {
        u64 from[POINTER_GROUP];
        UNROLL for (u32 i = 0; i < POINTER_GROUP && group + i < S; ++i) from[i] = shared.pointer[sweep.pointer + group + i] + at;
        UNROLL for (u32 i = 0; i < POINTER_GROUP && group + i < S; ++i) {
            UNROLL for (u32 u = 0; u < U; ++u) {
                loaded[u][group + i] = load_vector(from[i]);
                from[i] += stride;
            }
        }
    }
    UNROLL for (u32 u = 0; u < U; ++u) {
        Vector result = loaded[u][0];
        if constexpr (S > 1) {
            Wides<Element> total = widen<Element>(result);
            UNROLL for (u32 s = 1; s < S; ++s) accumulate<OP, Element>(total, loaded[u][s]);
            result = narrow<Element>(total);
        }
        if constexpr (Divide) result = divided<Element>(result, sweep.divisor);
        store_everywhere(sweep.pointer + S, sweep.destinations, at, result);
        at += stride;
    }
}

// The same for one vector and more sources than have a loop of their own.
template <bool Divide>
DEVICE void move_vector_of_many(const Sweep& sweep, u64 at) {
    constexpr u32 group = 4;
    Wides<Element> total = widen<Element>(load_vector(shared.pointer[sweep.pointer] + at));
    u32 s = 1;
    ROLLED for (; s + group <= sweep.sources; s += group) {
        Vector loaded[group];
        UNROLL for (u32 i = 0; i < group; ++i) loaded[i] = load_vector(shared.pointer[sweep.pointer + s + i] + at);
        UNROLL for (u32 i = 0; i < group; ++i) accumulate<OP, Element>(total, loaded[i]);
    }
    ROLLED for (; s < sweep.sources; ++s) accumulate<OP, Element>(total, load_vector(shared.pointer[sweep.pointer + s] + at));
    Vector result = narrow<Element>(total);
    if constexpr (Divide) result = divided<Element>(result, sweep.divisor);
    store_everywhere(sweep.pointer + sweep.sources, sweep.destinations, at, result);
}

// Moves all whole vectors of this block. S sources, or any number if S is 0; U tiles at a time.
template <bool Divide, u32 S, u32 U>
DEVICE void sweep_vectors(const Sweep& sweep, u32 phase) {
    if (sweep.bytes < VECTOR_BYTES) return;
    const u64 end = sweep.bytes - VECTOR_BYTES + 1;  // of the offsets at which a vector can begin
    const u32 stride = blocks() * TILE_BYTES;
    // With a phase, the last vector of a tile would end in the next one.
    const u32 slots = TILE_VECTORS - (phase != 0);
    ROLLED for (u32 slot = thread(); slot < slots; slot += THREADS) {
        u64 at = static_cast<u64>(block()) * TILE_BYTES + slot * VECTOR_BYTES + phase;
        if constexpr (S == 0) {
            ROLLED for (; at < end; at += stride) move_vector_of_many<Divide>(sweep, at);
        } else {
            ROLLED for (; at + static_cast<u64>(stride) * (U - 1) < end; at += static_cast<u64>(stride) * U) move_vectors<S, U, Divide>(sweep, at, stride);
            if constexpr (U > 1)
                ROLLED for (; at < end; at += stride) move_vectors<S, 1, Divide>(sweep, at, stride);
        }
    }
}

// An element may lie at any address.
DEVICE Raw load_element(u64 from) {
    if (from % ELEMENT_BYTES == 0) return load_as<Raw>(from);
    struct Bytes {
        u8 b[ELEMENT_BYTES];
    } bytes;
    UNROLL for (u32 i = 0; i < ELEMENT_BYTES; ++i) bytes.b[i] = load_as<u8>(from + i);
    return bits_as<Raw>(bytes);
}
DEVICE void store_element(u64 to, Raw raw) {
    if (to % ELEMENT_BYTES == 0) return store_as<Raw>(to, raw);
    struct Bytes {
        u8 b[ELEMENT_BYTES];
    };
    const Bytes bytes = bits_as<Bytes>(raw);
    UNROLL for (u32 i = 0; i < ELEMENT_BYTES; ++i) store_as<u8>(to + i, bytes.b[i]);
}

template <bool Divide>
DEVICE void move_element(const Sweep& sweep, u64 at) {
    Raw result = load_element(shared.pointer[sweep.pointer] + at);
    if constexpr (OP != Op::none) {
        if (sweep.sources > 1) {
            Element::Wide total = Element::widen(result);
            ROLLED for (u32 s = 1; s < sweep.sources; ++s)
                total = combine<OP, Element>(total, Element::widen(load_element(shared.pointer[sweep.pointer + s] + at)));
            result = Element::narrow(total);
        }
    }
    if constexpr (Divide) result = divided<Element>(result, sweep.divisor);
    ROLLED for (u32 d = 0; d < sweep.destinations; ++d) store_element(shared.pointer[sweep.pointer + sweep.sources + d] + at, result);
}

DEVICE u64 tiles_of(u64 bytes) { return (bytes + TILE_BYTES - 1) / TILE_BYTES; }
DEVICE u32 tile_bytes(u64 tile, u64 bytes) {
    const u64 rest = bytes - tile * TILE_BYTES;
    return rest < TILE_BYTES ? static_cast<u32>(rest) : TILE_BYTES;
}

template <bool Divide>
DEVICE void sweep_elements(const Sweep& sweep) {
    ROLLED for (u64 tile = block(); tile < tiles_of(sweep.bytes); tile += blocks()) {
        const u32 end = tile_bytes(tile, sweep.bytes);
        ROLLED for (u32 at = thread() * ELEMENT_BYTES; at < end; at += THREADS * ELEMENT_BYTES)
            move_element<Divide>(sweep, tile * TILE_BYTES + at);
    }
}

// Moves the elements before the first and after the last whole vector of each tile. Each tile has fewer than `slots`
// of them; consecutive threads take the slots of consecutive tiles of this block.
template <bool Divide>
DEVICE void sweep_edges(const Sweep& sweep, u32 phase) {
    constexpr u32 slots = 2 * VECTOR_ELEMENTS;
    const u64 tiles = tiles_of(sweep.bytes);
    if (phase == 0 && sweep.bytes % VECTOR_BYTES == 0) return;
    ROLLED for (u32 index = thread();; index += THREADS) {
        // Without a phase only the last tile has edges.
        u64 tile = block() + static_cast<u64>(index / slots) * blocks();
        if (phase == 0) {
            if (index >= slots || (tiles - 1) % blocks() != block()) return;
            tile = tiles - 1;
        }
        if (tile >= tiles) return;
        const u32 length = tile_bytes(tile, sweep.bytes), slot = index % slots * ELEMENT_BYTES;
        const u32 behind = length <= phase ? phase : phase + (length - phase) / VECTOR_BYTES * VECTOR_BYTES;
        const u32 at = slot < phase ? slot : behind + slot - phase;
        if (at < length) move_element<Divide>(sweep, tile * TILE_BYTES + at);
    }
}

// Chooses a loop by the number of sources. Each has about eight loads in flight per thread. Divisions, and the sixteen
// elements of a vector of bytes, need more registers and leave room for fewer.
template <bool Divide>
DEVICE void sweep_vectors_of(const Sweep& sweep, u32 phase) {
    constexpr bool roomy = VECTOR_ELEMENTS <= 8, roomier = roomy && !Divide;
    if (sweep.sources == 1) return sweep_vectors<Divide, 1, Divide ? 1 : 4>(sweep, phase);
    if constexpr (OP != Op::none && roomy) {
        switch (sweep.sources) {
            case 2: return sweep_vectors<Divide, 2, roomier ? 4 : 1>(sweep, phase);
            case 3: return sweep_vectors<Divide, 3, roomier ? 2 : 1>(sweep, phase);
            case 4: return sweep_vectors<Divide, 4, roomier ? 2 : 1>(sweep, phase);
            case 5: return sweep_vectors<Divide, 5, 1>(sweep, phase);
            case 6: return sweep_vectors<Divide, 6, 1>(sweep, phase);
            case 7: return sweep_vectors<Divide, 7, 1>(sweep, phase);
            case 8: return sweep_vectors<Divide, 8, 1>(sweep, phase);
        }
    }
    if constexpr (OP != Op::none) sweep_vectors<Divide, 0, 1>(sweep, phase);
}

// A function of its own, so that the state of the interpreter does not take registers from the loops.
template <bool Divide>
DEVICE_CALL void sweep(u32 pointer, u32 sources, u32 destinations, u64 bytes, u32 divisor) {
    const Sweep sweep{pointer, sources, destinations, bytes, divisor};
    u64 disagreement = 0;
    ROLLED for (u32 r = 1; r < sources + destinations; ++r)
        disagreement |= shared.pointer[pointer + r] ^ shared.pointer[pointer];
    const u32 phase = static_cast<u32>(-shared.pointer[pointer]) % VECTOR_BYTES;
    if (disagreement % VECTOR_BYTES != 0 || phase % ELEMENT_BYTES != 0) return sweep_elements<Divide>(sweep);
    sweep_vectors_of<Divide>(sweep, phase);
    sweep_edges<Divide>(sweep, phase);
}

// Runs the move at a position of the program, with the addresses of its refs.
DEVICE void run_move(const Launch& launch, u32 at, u32 pointer, u32 pass) {
    const Move move(at);
    if constexpr (wire::Format::used) {
        if (needs_codec(at))
            return sweep_encoded<OP>(at, pointer, bytes_of(at, pass), (move.flags() & MOVE_DIVIDE) != 0 ? launch.size : 0);
    }
    if (DIVISIBLE && (move.flags() & MOVE_DIVIDE) != 0)
        sweep<DIVISIBLE>(pointer, move.sources(), move.destinations(), bytes_of(at, pass), launch.size);
    else
        sweep<false>(pointer, move.sources(), move.destinations(), bytes_of(at, pass), 0);
}

}  // namespace unisono_kernel
