#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>

#include "unisono/collective_queue.hpp"
#include "unisono/endpoint.hpp"

namespace unisono::bindings {

inline Nanoseconds nanoseconds(double seconds) {
    constexpr double longest = 3e8;  // ten years
    return Nanoseconds(static_cast<std::int64_t>(std::clamp(seconds, 0.0, longest) * 1e9));
}

// What other classes use of the Python object of an endpoint, which they keep alive.
struct EndpointParts {
    Endpoint& endpoint;
    CollectiveQueue& queue;
    const bool& abandoned;  // in a forked child
};
EndpointParts parts_of(nanobind::handle endpoint);

void bind_endpoint(nanobind::module_& module);

}  // namespace unisono::bindings
