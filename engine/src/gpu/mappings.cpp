#include "unisono/gpu/mappings.hpp"

namespace unisono::gpu {

Mappings::Mappings(const Driver& driver, Endpoint& endpoint, RegistrationBoard& board)
    : driver_(driver), endpoint_(endpoint), board_(board), mappings_(endpoint.settings.geometry.size),
      versions_(endpoint.settings.geometry.size, 0), looked_at_(endpoint.settings.geometry.size) {}

void Mappings::open_offers() {
    for (std::uint32_t owner = 0; owner < endpoint_.settings.geometry.size; ++owner) {
        if (owner == endpoint_.settings.rank) continue;
        const std::uint32_t version = board_.head(owner).version.load(std::memory_order_acquire);
        if (version == versions_[owner]) continue;
        versions_[owner] = version;
        look_at(owner);
        looked_at_[owner].store(version, std::memory_order_release);
        endpoint_.wake_if_asleep(owner);
        endpoint_.wake_if_asleep(endpoint_.settings.rank);
    }
}

void Mappings::look_at(std::uint32_t owner) {
    const std::uint32_t used = board_.head(owner).used_slots.load(std::memory_order_acquire);
    auto& mappings = mappings_[owner];
    if (mappings.size() < used) mappings.resize(used);
    for (std::uint32_t number = 0; number < used; ++number) {
        Slot& slot = board_.slot(owner, number);
        Mapping& mapping = mappings[number];
        const std::uint32_t generation = slot.generation.load(std::memory_order_acquire);
        if (generation == mapping.generation) continue;
        withdraw(mapping);
        mapping.generation = generation;
        if (generation % 2 == 0) continue;
        const cuda::IpcHandle handle = slot.handle;
        std::atomic_thread_fence(std::memory_order_acquire);
        if (slot.generation.load(std::memory_order_relaxed) != generation) continue;  // the version has changed, too
        cuda::Address address = 0;
        if (driver_.functions().ipc_open_mem_handle(&address, handle, cuda::lazy_peer_access) != cuda::Result::success)
            address = 0;
        mapping.address = address;
        Answer& answer = slot.answers[endpoint_.settings.rank];
        answer.address.store(address, std::memory_order_relaxed);
        answer.generation.store(generation, std::memory_order_release);
    }
}

void Mappings::withdraw(Mapping& mapping) {
    if (mapping.address != 0) withdrawn_.push_back(mapping.address);
    mapping.address = 0;
}

void Mappings::close_withdrawn() {
    for (const cuda::Address address : withdrawn_) driver_.functions().ipc_close_mem_handle(address);
    withdrawn_.clear();
}

void Mappings::close_all() {
    for (auto& of_owner : mappings_)
        for (Mapping& mapping : of_owner) withdraw(mapping);
    close_withdrawn();
}

}  // namespace unisono::gpu
