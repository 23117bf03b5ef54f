#include "unisono/gpu/residents.hpp"

#include <algorithm>

namespace unisono::gpu {

// Never destroyed: communicators may be closed while the process exits.
Residents& Residents::of_process() {
    static Residents* const only = new Residents;
    return *only;
}

void Residents::enter(const Driver& driver, const Resident& resident) {
    const std::lock_guard guard(mutex_);
    if (!known_.empty() && known_.back().communicator == resident.communicator) [[likely]] {
        known_.back().stream = resident.stream;
        return;
    }
    const auto before = std::find_if(known_.begin(), known_.end(),
                                     [&](const Resident& each) { return each.communicator == resident.communicator; });
    if (before != known_.end()) {
        known_.erase(before);
    } else if (const auto on_device = [&](const Resident& each) { return each.device == resident.device; };
               std::count_if(known_.begin(), known_.end(), on_device) == most) {
        const auto oldest = std::find_if(known_.begin(), known_.end(), on_device);
        const cuda::Functions& functions = driver.functions();
        // A stream that does not exist any more has run everything.
        if (functions.event_record(oldest->mark->handle(), oldest->stream) == cuda::Result::success)
            driver.check(functions.stream_wait_event(resident.stream, oldest->mark->handle(), 0), "cuStreamWaitEvent");
        known_.erase(oldest);
    }
    known_.push_back(resident);
}

void Residents::leave(const void* communicator) {
    const std::lock_guard guard(mutex_);
    std::erase_if(known_, [&](const Resident& each) { return each.communicator == communicator; });
}

}  // namespace unisono::gpu
