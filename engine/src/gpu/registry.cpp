#include "unisono/gpu/registry.hpp"

#include <bit>

namespace unisono::gpu {

std::optional<std::uint64_t> Registry::buffer_id(cuda::Address address) const {
    std::uint64_t id = 0;
    const auto result = driver_.functions().pointer_get_attribute(&id, cuda::PointerAttribute::buffer_id, address);
    if (result != cuda::Result::success) return {};
    return id;
}

Block* Registry::known(cuda::Address address, std::uint64_t bytes) const {
    for (Block* const block : recent_)
        if (block != nullptr && block->contains(address, bytes)) return block;
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return nullptr;
    Block* const block = std::prev(after)->second.get();
    if (!block->contains(address, bytes)) return nullptr;
    recent_[block->serial % 2] = block;
    return block;
}

Block* Registry::find(cuda::Address address, std::uint64_t bytes) {
    Block* const block = known(address, bytes);
    return block != nullptr && buffer_id(address) == block->buffer_id ? block : nullptr;
}

std::shared_ptr<Block> Registry::find_or_add(cuda::Address address, std::uint64_t bytes) {
    if (const Block* const block = find(address, bytes)) return blocks_.at(block->base);
    check_device(address);
    withdraw_freed();
    cuda::Address base = address;
    std::size_t length = bytes;
    const auto result = driver_.functions().mem_get_address_range(&base, &length, address);
    const bool known_range = result == cuda::Result::success && base <= address && address - base + bytes <= length;
    auto block = std::make_shared<Block>();
    block->base = known_range ? base : address;
    block->bytes = known_range ? length : bytes;
    block->buffer_id = buffer_id(address).value_or(0);
    block->serial = ++serials_;
    block->shareable = known_range && offer(*block);
    // What is left here of an earlier registration of the same addresses is out of date.
    std::erase_if(blocks_, [&](const auto& entry) {
        Block& other = *entry.second;
        if (other.base >= block->base + block->bytes || block->base >= other.base + other.bytes) return false;
        withdraw(other);
        return true;
    });
    recent_[0] = recent_[1] = nullptr;
    blocks_[block->base] = block;
    return block;
}

void Registry::check_device(cuda::Address address) const {
    int device = -1;
    const auto result = driver_.functions().pointer_get_attribute(&device, cuda::PointerAttribute::device, address);
    if (result != cuda::Result::success) throw ForeignMemory{address, -1};
    if (device != device_) throw ForeignMemory{address, device};
}

std::optional<std::uint32_t> Registry::free_slot() {
    if (!free_slots_.empty()) {
        const std::uint32_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
    }
    if (used_slots_ == RegistrationBoard::slots) return {};
    board_.allocate_slot(endpoint_.settings.rank, used_slots_);
    board_.head(endpoint_.settings.rank).used_slots.store(used_slots_ + 1, std::memory_order_release);
    return used_slots_++;
}

// Returns false if the memory cannot be shared: it belongs to a pool or was mapped page by page.
bool Registry::offer(Block& block) {
    int exportable = 0;
    const cuda::Functions& functions = driver_.functions();
    const auto result =
        functions.pointer_get_attribute(&exportable, cuda::PointerAttribute::can_be_exported, block.base);
    if (result == cuda::Result::success && exportable == 0) return false;
    cuda::IpcHandle handle{};
    if (functions.ipc_get_mem_handle(&handle, block.base) != cuda::Result::success) return false;
    const auto slot = free_slot();
    if (!slot) return false;
    const std::uint32_t rank = endpoint_.settings.rank;
    Slot& offered = board_.slot(rank, *slot);
    std::atomic_thread_fence(std::memory_order_release);  // after the last withdrawal from this slot
    offered.bytes = block.bytes;
    offered.handle = handle;
    block.slot = *slot;
    block.generation = offered.generation.load(std::memory_order_relaxed) + 1;
    offered.generation.store(block.generation, std::memory_order_release);
    board_.head(rank).version.fetch_add(1, std::memory_order_release);
    board_.wake_all();
    block.opened = std::uint64_t{1} << rank;
    block.addresses[rank] = block.base;
    return true;
}

void Registry::take_answers(Block& block) {
    for (std::uint32_t peer = 0; block.shareable && peer < endpoint_.settings.geometry.size; ++peer) {
        if ((block.opened >> peer & 1) != 0) continue;
        const Answer& answer = board_.slot(endpoint_.settings.rank, block.slot).answers[peer];
        if (answer.generation.load(std::memory_order_acquire) != block.generation) continue;
        block.addresses[peer] = answer.address.load(std::memory_order_relaxed);
        block.opened |= std::uint64_t{1} << peer;
        if (block.addresses[peer] == 0) withdraw(block);
    }
}

void Registry::await(Block& block, std::uint64_t contacts, Wait what) {
    while (block.shareable && (contacts & ~block.opened) != 0) {
        const auto peer = static_cast<std::uint32_t>(std::countr_zero(contacts & ~block.opened));
        const Answer& answer = board_.slot(endpoint_.settings.rank, block.slot).answers[peer];
        what.peer = peer;
        endpoint_.wait([&] { return answer.generation.load(std::memory_order_acquire) == block.generation; }, what);
        block.addresses[peer] = answer.address.load(std::memory_order_relaxed);
        block.opened |= std::uint64_t{1} << peer;
        if (block.addresses[peer] == 0) withdraw(block);
    }
}

void Registry::withdraw(Block& block) {
    if (!block.shareable) return;
    block.shareable = false;
    const std::uint32_t rank = endpoint_.settings.rank;
    board_.slot(rank, block.slot).generation.store(block.generation + 1, std::memory_order_release);
    board_.head(rank).version.fetch_add(1, std::memory_order_release);
    board_.wake_all();
    free_slots_.push_back(block.slot);
}

void Registry::withdraw_freed() {
    std::erase_if(blocks_, [&](const auto& entry) {
        Block& block = *entry.second;
        const auto id = buffer_id(block.base);
        if (id && *id == block.buffer_id) return false;
        withdraw(block);
        return true;
    });
    recent_[0] = recent_[1] = nullptr;
}

void Registry::withdraw_all() {
    for (const auto& [base, block] : blocks_) withdraw(*block);
    blocks_.clear();
    recent_[0] = recent_[1] = nullptr;
}

}  // namespace unisono::gpu
