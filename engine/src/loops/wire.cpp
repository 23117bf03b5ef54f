#include "unisono/wire.hpp"

#include <stdexcept>

namespace unisono {

const WireLoops& wire_loops(Wire wire) {
    const WireLoops* const loops = variants().front().find_wire(wire);
    if (loops == nullptr) throw std::invalid_argument("there are no loops for a wire that carries float32 as it is");
    return *loops;
}

}  // namespace unisono
