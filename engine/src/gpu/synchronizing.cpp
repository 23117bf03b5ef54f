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
    std::uint32_t last = 0;
    {
        const std::lock_guard lock(calls_);
        const auto mark = [&](const Order& order) {  // calls of one order run one after the other
            if (!order.any || is_capturing(order.stream)) return;
            auto event = std::make_unique<GpuEventHandle>(driver_);
            // A stream that does not exist any more has run everything.
            if (functions.event_record(event->handle(), order.stream) == cuda::Result::success)
                events.push_back(std::move(event));
        };
        last = enqueued_.load();
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
    const std::lock_guard lock(calls_);
    if (enqueued_.load() == last && !is_capturing(order_.stream)) {
        order_.any = false;  // the caller may destroy the stream now
        if (options_.kernel_mode && !captured_) seen_completed_ = marked_ = last;
    }
    return true;
}

}  // namespace unisono::gpu
