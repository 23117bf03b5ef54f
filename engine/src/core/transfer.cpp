#include "unisono/transfer.hpp"

namespace unisono {

namespace {

constexpr int type_shift = 56;
constexpr std::uint64_t count_mask = (std::uint64_t{1} << type_shift) - 1;

}  // namespace

std::uint64_t transfer_label(DType dtype, std::uint64_t count) {
    return static_cast<std::uint64_t>(dtype) << type_shift | count;
}

std::uint64_t count_of_label(std::uint64_t label) { return label & count_mask; }

std::uint64_t bytes_of_label(std::uint64_t label) { return count_of_label(label) * dtype_bytes[label >> type_shift]; }

std::string dtype_of_label(std::uint64_t label) {
    const std::uint64_t type = label >> type_shift;
    return type < dtype_names.size() ? dtype_names[type] : "unknown";
}

}  // namespace unisono
