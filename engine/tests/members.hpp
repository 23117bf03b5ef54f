// Ranks that are threads, each with an endpoint, an executor and both queues.
#pragma once

#include <cstdint>
#include <functional>

#include "ranks.hpp"
#include "unisono/collective_queue.hpp"
#include "unisono/transfer_queue.hpp"

namespace unisono::tests {

struct Member {
    explicit Member(const Settings& settings)
        : endpoint(settings), executor(endpoint), collectives(executor), transfer_queue(endpoint) {}
    std::uint32_t rank() const { return endpoint.settings.rank; }
    std::uint32_t size() const { return endpoint.settings.geometry.size; }
    // Finishes asynchronous calls and closes the endpoint.
    void leave() {
        collectives.stop();
        transfer_queue.stop();
        endpoint.close();
    }

    Endpoint endpoint;
    Executor executor;
    CollectiveQueue collectives;
    TransferQueue transfer_queue;
};

// Makes a communicator and runs `body` for each member in a separate thread.
inline void with_members(const Geometry& geometry, const std::function<void(Member&)>& body) {
    SharedMemory memory(geometry);
    const std::vector<Settings> settings = memory.for_threads();
    run_in_threads(geometry.size, [&](std::uint32_t rank) {
        Member member(settings[rank]);
        body(member);
    });
}

// Returns the fault of an action; Fault::none if it succeeds.
inline FaultReport report_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Failure& failure) {
        return failure.report;
    }
    return {};
}

}  // namespace unisono::tests
