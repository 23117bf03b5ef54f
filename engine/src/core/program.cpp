#include "unisono/program.hpp"

#include <stdexcept>
#include <string>

namespace unisono {

namespace {

void require(bool condition, const char* what, std::size_t instruction) {
    if (!condition)
        throw std::invalid_argument("instruction " + std::to_string(instruction) + " of a compiled program: " + what);
}

}  // namespace

void Program::check(std::uint32_t rank, std::uint32_t size) const {
    const auto is_part = [&](std::uint32_t part) { return part < parts.size(); };
    const auto is_part_or_none = [&](std::uint32_t part) { return part == no_part || is_part(part); };
    for (const ChannelUse& use : channels)
        require(use.peer < size && (use.reach == Reach::all || use.peer != rank), "no such peer", 0);
    for (const std::uint32_t part : results) require(is_part(part), "no such part of a result", 0);
    for (const std::uint32_t part : rounded_last) require(is_part(part), "no such part to be rounded", 0);
    for (const std::uint32_t peer : silent_receivers) require(peer < size && peer != rank, "no such peer", 0);
    for (const Buffer buffer : parts) require(buffer <= Buffer::work, "no such buffer", 0);
    for (std::size_t at = 0; at < instructions.size(); ++at) {
        const Instruction& op = instructions[at];
        const bool receives = op.kind == Kind::receive || op.kind == Kind::reduce;
        require(op.kind <= Kind::combine, "no such kind", at);
        require(op.chunks <= largest_message || op.kind >= Kind::copy, "larger than the largest message", at);
        require(
            op.kind == Kind::reduce ? op.sources >= 1 && op.sources <= most_sources : op.sources == (receives ? 1 : 0),
            "impossible number of sources", at);
        require(op.from + op.sources <= channels.size(), "no such channel to receive from", at);
        require(op.to == no_channel ? op.kind != Kind::send
                                    : op.to < channels.size() && (op.kind == Kind::send || receives),
                "no such channel to send to", at);
        require(op.operands + std::size_t{op.chunks} <= operands.size(), "no such operands", at);
        for (std::size_t chunk = 0; chunk < op.chunks; ++chunk) {
            const Operand& operand = operands[op.operands + chunk];
            require(is_part(operand.left), "no such part", at);
            require(op.kind == Kind::combine ? is_part(operand.right) : operand.right == no_part, "no such part", at);
            require(op.kind >= Kind::copy ? is_part(operand.out) : is_part_or_none(operand.out), "no such part", at);
        }
    }
}

}  // namespace unisono
