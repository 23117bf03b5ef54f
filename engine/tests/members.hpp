// Ranks that are threads, each with an endpoint, an executor and both queues.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "hosts.hpp"
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

// Runs `body` for each member of a communicator in a separate thread.
inline void with_members(const Hosts& hosts, const std::function<void(Member&)>& body) {
    run_in_threads(static_cast<std::uint32_t>(hosts.settings().size()), [&](std::uint32_t rank) {
        Member member(hosts.settings()[rank]);
        body(member);
    });
}
inline void with_members(const Geometry& geometry, const std::function<void(Member&)>& body) {
    with_members(Hosts(geometry), body);
}

inline bool says(const FaultReport& report, const std::string& text) {
    return std::strstr(report.text, text.c_str()) != nullptr;
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
