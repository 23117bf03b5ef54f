// The part of GpuEndpoint that waits on the host for the calls on the GPU.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "unisono/gpu/gpu_endpoint.hpp"

namespace unisono::gpu {

bool GpuEndpoint::synchronize(Nanoseconds timeout) {
    constexpr auto between_checks = std::chrono::milliseconds(20);
    const cuda::Functions& functions = driver_.functions();
    const CurrentContext current = device_->enter();
    std::vector<std::unique_ptr<GpuEventHandle>> events;
    {
        const std::lock_guard lock(calls_);
        const auto mark = [&](const Order& order) {  // calls of one order run one after the other
            if (!order.any || is_capturing(order.stream)) return;
            auto event = std::make_unique<GpuEventHandle>(driver_);
            // A stream that does not exist any more has run everything.
            if (functions.event_record(event->handle(), order.stream) == cuda::Result::success)
                events.push_back(std::move(event));
        };
        mark(order_);
        for (const Lane& lane : lanes_) mark(lane.order);
    }
    const auto is_over = [&](const std::unique_ptr<GpuEventHandle>& event) {
        return functions.event_query(event->handle()) != cuda::Result::not_ready;
    };
    const Clock::time_point began = Clock::now();
    Clock::time_point next_check = began + between_checks;
    while (!std::all_of(events.begin(), events.end(), is_over)) {
        const Clock::time_point now = Clock::now();
        if (now - began >= timeout) return false;
        if (now >= next_check) {
            if (endpoint_.check_interrupt()) throw Failure(endpoint_.fault_report());
            check_faults();
            next_check = now + between_checks;
        }
        ::usleep(20);
    }
    check_faults();
    return true;
}

}  // namespace unisono::gpu
